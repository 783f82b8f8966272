#!/usr/bin/env bash
# Installs the Debian 12 packages that building and testing Shoal needs. Does nothing when all are there.
# Run it as root, or as a user who may use sudo.
set -euo pipefail

PACKAGES=(
  # the build
  git cmake ninja-build ccache python3 ca-certificates
  clang-19 lld-19 libclang-rt-19-dev
  # the compiler
  llvm-19-dev libmlir-19-dev mlir-19-tools llvm-19-tools liblld-19-dev zlib1g-dev libzstd-dev
  # the runtime
  openmpi-bin libopenmpi-dev libdnnl-dev libopenblas-dev nlohmann-json3-dev libcli11-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev
)

missing=()
for package in "${PACKAGES[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [[ $status != installed ]]; then missing+=("$package"); fi
done

if ((${#missing[@]} == 0)); then
  echo "bootstrap: all ${#PACKAGES[@]} packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "bootstrap: needs root or sudo to install: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi

echo "bootstrap: installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
echo "bootstrap: done"
