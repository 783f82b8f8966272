#!/usr/bin/env bash
# Builds everything and runs every test: GoogleTest, lit, and programs of several ranks.
#   --full      also the long matrix of plans and meshes
#   --sanitize  the compiler's own unit and lit tests under AddressSanitizer and UBSan (folder build-sanitize)
# The last lines say how many tests ran.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

full=0 sanitize=0
for argument in "$@"; do
  case $argument in
    --full) full=1 ;;
    --sanitize) sanitize=1 ;;
    -h | --help) sed -n '2,5s/^# \?//p' "$0" && exit 0 ;;
    *) echo "test.sh: unknown option, got: $argument (see --help)" >&2 && exit 2 ;;
  esac
done

options=(-DSHOAL_SANITIZE=OFF)
selection=()
if ((sanitize)); then
  BUILD_DIR=$SHOAL_ROOT/build-sanitize
  options=(-DSHOAL_SANITIZE=ON)
  # Programs of several ranks stay out: Open MPI, oneDNN and the kernels are not instrumented.
  export LIT_FILTER_OUT='EndToEnd/'
  selection=(--exclude-regex '^runtime[.]|shared-mlir-only')
  export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}
fi
if ((full)); then export SHOAL_TEST_FULL=1; fi

bootstrap
configure "${options[@]}"
build all

say "test"
log=$BUILD_DIR/Testing/Temporary/LastTest.log
status=0
ctest --test-dir "$BUILD_DIR" --output-on-failure -j "$JOBS" "${selection[@]}" || status=$?

if [[ -f $log ]]; then
  say "totals"
  awk -f "$SHOAL_ROOT/scripts/totals.awk" "$log"
fi
exit "$status"
