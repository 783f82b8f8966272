# Steps shared by demo.sh and test.sh: bootstrap, configure, build. Source it; it runs nothing itself.
# shellcheck shell=bash

set -euo pipefail

SHOAL_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=${SHOAL_BUILD_DIR:-$SHOAL_ROOT/build}
JOBS=${SHOAL_JOBS:-$(nproc)}

# Paths in the objects are relative to the checkout, so that a second clone hits the same cache.
export CCACHE_BASEDIR=$SHOAL_ROOT CCACHE_NOHASHDIR=1
# What ccache asks for before it caches a file with a precompiled header.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true

say() { printf '\n== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

bootstrap() { "$SHOAL_ROOT/scripts/bootstrap.sh"; }

# configure [cmake options]: an existing build folder is configured again only when CMake asks for it,
# except that the options given here always take effect.
configure() {
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  say "configure ($BUILD_DIR)"
  mkdir -p "$BUILD_DIR"
  cmake -G Ninja -S "$SHOAL_ROOT" -B "$BUILD_DIR" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
    -DMLIR_DIR=/usr/lib/llvm-19/lib/cmake/mlir "${launcher[@]}" "$@" >"$BUILD_DIR/configure.log" 2>&1 ||
    { cat "$BUILD_DIR/configure.log" >&2 && die "configuring failed"; }
}

# build [targets]
build() {
  say "build (-j$JOBS)"
  local targets=()
  if (($# > 0)); then targets=(--target "$@"); fi
  cmake --build "$BUILD_DIR" -j "$JOBS" "${targets[@]}"
}

# How programs under the sanitizers run.
sanitizer_options() {
  # Open MPI and oneDNN keep what they allocate. LLVM's allocators poison what they have not handed out, but the shared
  # libMLIR, which has no sanitizer, hands it out without a word.
  export ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
}
