#!/usr/bin/env bash
# Trains eight residual blocks on one rank, and on four in a pipeline under each schedule. Prints, per schedule, how far
# losses and parameters are from those of one rank, and bubbles, stashes and messages beside their formulas. Fails when
# a number is not that of its formula, or a bound is missed.
#   examples/pipeline/run.sh
# STEPS=24 says how long, WORK=build/pipeline where files go. The tools are those on PATH, or else of build/bin.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
begin pipeline shoalc shoal-opt shoal-run
steps=${STEPS:-24}
ranks=4
schedules=(naive gpipe 1f1b interleaved zb-h1 zb-h2 zb-v)
python3 "$here/make_data.py" "$work"

compile() { # compile NAME [options of shoalc]
  quietly "$work/$1.remarks" shoalc "$here/blocks.mlir" -o "$work/$1" \
    --dtype f64 --optimizer sgd --lr 0.005 --momentum 0.9 "${@:2}"
}
train() { # train RANKS NAME
  quietly "$work/$2.log" timeout 600 shoal-run -n "$1" "$work/$2" --data x="$work/x.npy" --data y="$work/y.npy" \
    --steps "$steps" --shuffle --seed 1 --no-progress --metrics "$work/$2.jsonl" --report "$work/$2.json" \
    --dump-params "$work/$2.safetensors"
}
echo "== $steps steps in f64 on one rank, then on $ranks under ${#schedules[@]} schedules"
compile one
train 1 one
for schedule in "${schedules[@]}"; do
  microbatches=8
  if [[ $schedule == naive ]]; then microbatches=1; fi # the batch as a whole, from stage to stage
  plan=(--mesh pipe=$ranks --pipeline-schedule "$schedule" --microbatches $microbatches)
  compile "$schedule" "${plan[@]}" --report "$work/$schedule.promised.json"
  compile "$schedule.local" "${plan[@]}" --emit local # has the schedule as it runs
  train $ranks "$schedule"
done
python3 "$here/tables.py" "$work" "${schedules[@]}" || status=1
finish
