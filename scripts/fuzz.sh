#!/usr/bin/env bash
# Gives mutated inputs to the fuzz target of every parser, under the address and undefined-behaviour sanitizers.
#   --runs N      mutated inputs over all targets together (100000); those that a target begins with are not counted
#   --seed N      of the mutations (1)
#   --only NAME   one target of fuzz/CMakeLists.txt
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
    -h | --help)
      sed -n '2,7s/^# \?//p' "$0"
      printf 'Targets: %s\n' "$(sed -n 's/^shoal_add_fuzzer(\([a-z-]*\).*/\1/p' "$SHOAL_ROOT/fuzz/CMakeLists.txt" | paste -sd ' ')"
      exit 0 ;;
    *) echo "fuzz.sh: unknown option, got: $1 (see --help)" >&2 && exit 2 ;;
  esac
  shift
done
[[ $runs =~ ^[1-9][0-9]*$ && $seed =~ ^[1-9][0-9]*$ ]] ||
  { echo "fuzz.sh: --runs and --seed must be whole numbers of at least 1, got: $runs, $seed" >&2 && exit 2; }

BUILD_DIR=$SHOAL_ROOT/build-sanitize
bootstrap
configure -DSHOAL_SANITIZE=ON
sanitizer_options
# Names, and how many inputs each gets: its share of all, rounded up.
counts=$(awk -v runs="$runs" -v only="$only" '
  only == "" || $1 == only { names[++n] = $1; shares[n] = $2; all += $2 }
  END { for (i = 1; i <= n; ++i) { count = runs * shares[i] / all; print names[i], int(count) + (count > int(count)) } }
' "$BUILD_DIR/fuzz/shares.txt")
[[ $counts ]] || { echo "fuzz.sh: --only must name a target, got: $only (see --help)" >&2 && exit 2; }
# shellcheck disable=SC2046
build $(awk '{ print "fuzz-" $1 }' <<<"$counts") fuzz-corpus

status=0 total=0
lines=()
while read -r name count <&3; do
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
done 3<<<"$counts"

say "totals"
printf '%s\n' "${lines[@]}" "mutated inputs: $total"
exit "$status"
