#!/usr/bin/env bash
# Writes docs/generated from TableGen and the tools' --help; with --check it only says what drifted.
#   scripts/generate-docs.sh [--check] [--bin BUILD/bin]
set -euo pipefail
cd "$(dirname "$0")/.."
check=0
bin=build/bin
while [ $# -gt 0 ]; do
  case "$1" in
    --check) check=1 ;;
    --bin) bin=${2:?--bin needs a folder}; shift ;;
    *) echo "generate-docs.sh: unknown argument: $1" >&2; exit 2 ;;
  esac
  shift
done
tblgen=${MLIR_TBLGEN:-/usr/lib/llvm-19/bin/mlir-tblgen}
include=(-I /usr/lib/llvm-19/include -I dialects -I dialects/Dist -I include)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for dialect in NN Dist Exec Pipe; do
  lower=$(echo "$dialect" | tr '[:upper:]' '[:lower:]')
  "$tblgen" -gen-dialect-doc -dialect="$lower" "${include[@]}" -I "dialects/$dialect" \
    "dialects/$dialect/${dialect}Ops.td" > "$out/$lower-dialect.md"
done
while IFS= read -r td; do
  component=$(echo "$td" | sed -e 's#^include/shoal/##' -e 's#/Passes.td$##' -e 's#Dialect/##' -e 's#/Transforms##')
  lower=$(echo "$component" | tr '[:upper:]/' '[:lower:]-')
  "$tblgen" -gen-pass-doc "${include[@]}" "$td" > "$out/$lower-passes.md"
done < <(find include -name Passes.td | sort)
for interface in ShardingRule Differentiable Reference Lowering Positioned; do
  "$tblgen" -gen-op-interface-docs "${include[@]}" "dialects/Interfaces/${interface}OpInterface.td"
done > "$out/interfaces.md"
{
  echo "# Command line"
  for tool in shoal-model "shoal-data bytes" "shoal-data text" "shoal-ckpt inspect" "shoal-ckpt verify" "shoal-ckpt merge" shoalc shoal-run; do
    printf '\n## %s\n\n```\n' "$tool"
    "$bin"/$tool --help # a tool and its command are two words
    printf '```\n'
  done
} > "$out/command-line.md"

if [ "$check" = 1 ]; then
  if ! diff -ru docs/generated "$out"; then
    echo "generate-docs.sh: docs/generated drifted: run scripts/generate-docs.sh and commit" >&2
    exit 1
  fi
else
  mkdir -p docs/generated
  rm -f docs/generated/*.md
  cp "$out"/*.md docs/generated/
fi
