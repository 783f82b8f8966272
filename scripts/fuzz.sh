#!/usr/bin/env bash
# Gives mutated inputs to the fuzz target of every parser, under the address and undefined-behaviour sanitizers.
#   --runs N      mutated inputs over all targets together (100000); those that a target begins with are not counted
#   --seed N      of the mutations (1)
#   --only NAME   one target: npy, safetensors, index, checkpoint, payload, program, run-options, board, compiler-options,
#                 attributes, config, mlir
# A crash or hang ends the script with status 1 and leaves its input in the build folder; the same executable
# replays it. The last lines say how many inputs each target took.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

runs=100000 seed=1 only=
while (($# > 0)); do
  case $1 in
    --runs | --seed | --only)
      (($# > 1)) || { echo "fuzz.sh: $1 expects a value" >&2 && exit 2; }
      declare "${1#--}=$2"
      shift ;;
    -h | --help) sed -n '2,8s/^# \?//p' "$0" && exit 0 ;;
    *) echo "fuzz.sh: unknown option, got: $1 (see --help)" >&2 && exit 2 ;;
  esac
  shift
done
[[ $runs =~ ^[1-9][0-9]*$ && $seed =~ ^[1-9][0-9]*$ ]] ||
  { echo "fuzz.sh: --runs and --seed must be whole numbers of at least 1, got: $runs, $seed" >&2 && exit 2; }

# Hundredths of all inputs. A module goes through every pass, so it takes as long as a thousand others.
names=(npy safetensors index checkpoint payload program run-options board compiler-options attributes config mlir)
shares=(12 12 6 8 8 14 10 8 8 8 4 2)

BUILD_DIR=$SHOAL_ROOT/build-sanitize
bootstrap
configure -DSHOAL_SANITIZE=ON
sanitizer_options
targets=()
for name in "${names[@]}"; do
  if [[ -z $only || $only == "$name" ]]; then targets+=("fuzz-$name"); fi
done
((${#targets[@]} > 0)) || { echo "fuzz.sh: --only must name a target, got: $only (see --help)" >&2 && exit 2; }
build "${targets[@]}" fuzz-corpus

status=0 total=0
lines=()
for i in "${!names[@]}"; do
  name=${names[i]}
  if [[ -n $only && $only != "$name" ]]; then continue; fi
  count=$runs
  if [[ -z $only ]]; then count=$((runs * shares[i] / 100)); fi
  say "fuzz $name ($count inputs, seed $seed)"
  corpora=()
  for folder in "$SHOAL_ROOT/fuzz/corpus/$name" "$BUILD_DIR/fuzz/corpus/$name"; do
    if [[ -d $folder ]]; then corpora+=("$folder"); fi
  done
  output=$("$SHOAL_ROOT/fuzz/run.sh" "$BUILD_DIR/bin/fuzz-$name" "$BUILD_DIR/fuzz/found/$name" "$count" "$seed" \
    "${corpora[@]}") || status=1
  printf '%s\n' "$output"
  line=$(tail -n 1 <<<"$output")
  lines+=("$line")
  total=$((total + $(awk '{ print $2 }' <<<"$line")))
done

say "totals"
printf '%s\n' "${lines[@]}" "mutated inputs: $total"
exit "$status"
