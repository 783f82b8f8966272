#!/usr/bin/env bash
# Gives mutated inputs to the fuzz target of every parser, under the address and undefined-behaviour sanitizers.
#   --runs N      inputs over all targets together (100000)
#   --seed N      of the mutations (1)
#   --only NAME   one target: npy, safetensors, payload, program, run-options, compiler-options, mlir
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
    -h | --help) sed -n '2,7s/^# \?//p' "$0" && exit 0 ;;
    *) echo "fuzz.sh: unknown option, got: $1 (see --help)" >&2 && exit 2 ;;
  esac
  shift
done
[[ $runs =~ ^[1-9][0-9]*$ && $seed =~ ^[1-9][0-9]*$ ]] ||
  { echo "fuzz.sh: --runs and --seed must be whole numbers of at least 1, got: $runs, $seed" >&2 && exit 2; }

# Shares of all inputs. A module goes through every pass, so it takes as long as a hundred others.
names=(npy safetensors payload program run-options compiler-options mlir)
shares=(20 20 10 20 10 10 10)

BUILD_DIR=$SHOAL_ROOT/build-sanitize
bootstrap
configure -DSHOAL_SANITIZE=ON
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
  found=$BUILD_DIR/fuzz/found/$name
  log=$found.log
  corpora=()
  for folder in "$SHOAL_ROOT/fuzz/corpus/$name" "$BUILD_DIR/fuzz/corpus/$name"; do
    if [[ -d $folder ]]; then corpora+=("$folder"); fi
  done
  mkdir -p "$found"
  result="no crash, no hang"
  "$BUILD_DIR/bin/fuzz-$name" -seed="$seed" -runs="$count" -timeout=20 -rss_limit_mb=4096 -close_fd_mask=3 \
    -print_final_stats=1 -artifact_prefix="$found-" "$found" "${corpora[@]}" >"$log" 2>&1 || {
    tail -n 40 "$log" && status=1 && result="FAULT, see $log"
  }
  took=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  total=$((total + ${took:-0}))
  lines+=("$(printf '%-17s %7s inputs  %s' "$name" "${took:-0}" "$result")")
done

say "totals"
printf '%s\n' "${lines[@]}" "inputs: $total"
exit "$status"
