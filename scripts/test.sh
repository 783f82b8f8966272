#!/usr/bin/env bash
# Builds everything and runs every test: GoogleTest, lit, programs of several ranks.
#   --full           also the long matrix of plans and meshes
#   --sanitize       then our own code once more under the address and undefined-behaviour sanitizers (folder
#                    build-sanitize), with a short run of every fuzz target
#   --sanitize-only  nothing but that
# The last lines say how many tests ran.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

plain=1 sanitize=0
for argument in "$@"; do
  case $argument in
    --full) export SHOAL_TEST_FULL=1 ;;
    --sanitize) sanitize=1 ;;
    --sanitize-only) plain=0 sanitize=1 ;;
    -h | --help) sed -n '2,8s/^# \?//p' "$0" && exit 0 ;;
    *) echo "test.sh: unknown option, got: $argument (see --help)" >&2 && exit 2 ;;
  esac
done

status=0 logs=()
# run_tests [options of ctest]
run_tests() {
  say "test ($BUILD_DIR)"
  ctest --test-dir "$BUILD_DIR" --output-on-failure -j "$JOBS" "$@" || status=$?
  logs+=("$BUILD_DIR/Testing/Temporary/LastTest.log")
}

bootstrap
if ((plain)); then
  configure -DSHOAL_SANITIZE=OFF
  build all
  run_tests
fi
if ((sanitize)); then
  BUILD_DIR=$SHOAL_ROOT/build-sanitize
  configure -DSHOAL_SANITIZE=ON
  build sanitized
  # Kernels are not instrumented, and a library that is loaded before ASan's counts MPI calls: programs of several
  # ranks are a few. Open MPI and oneDNN keep what they allocate.
  export LIT_FILTER_OUT='EndToEnd/(?!damaged|files|hostile|digits[.]test)|Equivalence/random'
  export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
  run_tests --exclude-regex '^codegen|generated-docs|shared-mlir-only|^runtime[.](collectives|tensors|linear)'
fi

say "totals"
awk -f "$SHOAL_ROOT/scripts/totals.awk" "${logs[@]}"
exit "$status"
