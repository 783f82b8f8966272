#!/usr/bin/env bash
# usage: run.sh EXECUTABLE FOUND RUNS SEED [CORPUS...]
# Gives RUNS mutated inputs to a libFuzzer target, after those of the corpora. FOUND is emptied first, because a run
# also begins with what lies there; what ends the target is kept beside it. The last line counts the inputs.
set -euo pipefail

executable=$1 found=$2 runs=$3 seed=$4
shift 4
rm -rf "$found"
mkdir -p "$found"
first=0
if (($# > 0)); then first=$(find "$@" -type f | wc -l); fi
export SHOAL_FUZZ_TALLY=$found.tally
rm -f "$SHOAL_FUZZ_TALLY"
status=0
"$executable" -seed="$seed" -runs=$((runs + first + 1)) -timeout=20 -rss_limit_mb=4096 -close_fd_mask=3 \
  -print_final_stats=1 -artifact_prefix="$found-" "$found" "$@" >"$found.log" 2>&1 || status=$?
((status == 0)) || tail -n 60 "$found.log"
# The target begins with an empty input of its own.
took=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")
mutated=$((${took:-0} - first - 1))
result="no crash, no hang"
((status == 0)) || result="FAULT, see $found.log"
if [[ -s $SHOAL_FUZZ_TALLY ]]; then result+="; all inputs: $(cat "$SHOAL_FUZZ_TALLY")"; fi
printf '%-17s %7d mutated of %4d first inputs  %s\n' "$(basename "$found")" "$((mutated > 0 ? mutated : 0))" "$first" \
  "$result"
exit "$status"
