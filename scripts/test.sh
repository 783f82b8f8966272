#!/usr/bin/env bash
# Builds everything and runs every test: GoogleTest, lit, programs of several ranks. Then runtime and compiler once more
# under the address and undefined-behaviour sanitizers (folder build-sanitize), with a short run of every fuzz target.
#   --filter REGEX   only tests whose name matches (lit's are paths in test/, others ctest's), without the sanitizers
#   --full           also the long tests; what they printed is written beside them (test/*/*.txt, by scripts/records.py)
#   --no-sanitize    without the sanitizers
#   --sanitize-only  nothing but what runs under them
# The last lines say how many tests ran.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

plain=1 sanitize=1 filter=
while (($#)); do
  argument=$1
  shift
  case $argument in
    --filter) (($#)) || die "--filter expects a REGEX"; filter=$1 && shift ;;
    --full) export SHOAL_TEST_FULL=1 ;;
    --no-sanitize) sanitize=0 ;;
    --sanitize-only) plain=0 ;;
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

# with_records COMMAND...: a command that runs lit. With --full, what the long tests printed becomes their records.
with_records() {
  if [[ -z ${SHOAL_TEST_FULL:-} ]]; then
    "$@" || status=$?
    return
  fi
  local results=$BUILD_DIR/lit.json load
  load=$(cut -d' ' -f1 /proc/loadavg)
  rm -f "$results"
  LIT_OPTS="${LIT_OPTS:-} --output=$results" "$@" || status=$?
  say "records"
  "$SHOAL_ROOT/scripts/records.py" "$results" --commit "$(git -C "$SHOAL_ROOT" describe --always --dirty)" \
    --load "$load" || status=$?
}

bootstrap
if [[ $filter ]]; then
  configure -DSHOAL_SANITIZE=OFF
  build all
  say "test ($BUILD_DIR, $filter)"
  lit=$(sed -n 's/^SHOAL_LIT:.*=//p' "$BUILD_DIR/CMakeCache.txt")
  names=$(python3 "$lit" --show-tests "$BUILD_DIR/test" 2>/dev/null | sed -n 's/^  //p'
          ctest --test-dir "$BUILD_DIR" -N -E '^lit$' | sed -n 's/^ *Test *#[0-9]*: //p')
  grep -qiE -- "$filter" <<<"$names" || die "no test matches: $filter"
  with_records python3 "$lit" -v --allow-empty-runs --filter "$filter" "$BUILD_DIR/test"
  ctest --test-dir "$BUILD_DIR" --output-on-failure -j "$JOBS" -R "$filter" -E '^lit$' || status=$?
  exit "$status"
fi
if ((plain)); then
  configure -DSHOAL_SANITIZE=OFF
  build all
  with_records run_tests
fi
if ((sanitize)); then
  BUILD_DIR=$SHOAL_ROOT/build-sanitize
  unset SHOAL_TEST_FULL # the long tests compile dozens of plans of one model, too
  configure -DSHOAL_SANITIZE=ON
  build sanitized
  sanitizer_options
  # Kernels are not instrumented, and programs of several ranks are a few: they share two cores, and each is several
  # times slower. Signals need no sanitizer, and dozens of compilations that differ in their plan alone no second run.
  export LIT_FILTER_OUT='EndToEnd/(?!damaged|files|hostile|digits[.]test)|Equivalence/(random|zero-lifetimes|pipeline_matrix)|Tools/(fullest-row|strategies|long_context)'
  run_tests --exclude-regex \
    '^codegen|generated-docs|shared-mlir-only|^runtime[.]failure|^runtime[.](collectives|tensors).*[.][1246]$'
fi

say "totals"
awk -f "$SHOAL_ROOT/scripts/totals.awk" "${logs[@]}"
exit "$status"
