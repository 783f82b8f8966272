#!/usr/bin/env bash
# Builds everything and runs every test: GoogleTest, lit, programs of several ranks. Then the runtime once more under
# the address and undefined-behaviour sanitizers (folder build-sanitize), with a short run of its fuzz targets.
#   --full           also the long matrix of plans and meshes
#   --no-sanitize    without the sanitizers
#   --sanitize       the compiler, too, under the sanitizers
#   --sanitize-only  nothing but that
# The last lines say how many tests ran.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

plain=1 sanitize=runtime
for argument in "$@"; do
  case $argument in
    --full) export SHOAL_TEST_FULL=1 ;;
    --no-sanitize) sanitize= ;;
    --sanitize) sanitize=all ;;
    --sanitize-only) plain=0 sanitize=all ;;
    -h | --help) sed -n '2,9s/^# \?//p' "$0" && exit 0 ;;
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
if [[ -n $sanitize ]]; then
  BUILD_DIR=$SHOAL_ROOT/build-sanitize
  configure -DSHOAL_SANITIZE=ON
  # Real ranks are three: they share two cores, and each is several times slower. Signals need no sanitizer.
  others='^runtime[.]failure|^runtime[.](collectives|tensors).*[.][1246]$'
  sanitizer_options
fi
if [[ $sanitize == runtime ]]; then
  build sanitized-runtime
  run_tests --tests-regex '^runtime[.]|^fuzz[.](npy|safetensors|index|payload|run-options|board|config)$' \
    --exclude-regex "$others"
elif [[ $sanitize == all ]]; then
  build sanitized
  # Kernels are not instrumented, and programs of several ranks are a few.
  export LIT_FILTER_OUT='EndToEnd/(?!damaged|files|hostile|digits[.]test)|Equivalence/random'
  run_tests --exclude-regex "^codegen|generated-docs|shared-mlir-only|$others"
fi

say "totals"
awk -f "$SHOAL_ROOT/scripts/totals.awk" "${logs[@]}"
exit "$status"
