#!/usr/bin/env bash
# Trains a small causal transformer of long rows on one rank, and on four that share each row, in every mode of
# --context-parallel. Prints, per mode, how far losses and parameters are from those of one rank, what attention sends
# beside its formula, peak memory, and how many tiles of scores ranks compute. Fails when a number is not that of its
# formula, or a bound is missed.
#   examples/long-context/run.sh
# STEPS=8 says how long, WORK=build/long-context where files go. The tools are those on PATH, or else of build/bin.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
begin long-context shoal-model shoalc shoal-run
steps=${STEPS:-8}
sequence=2048
declare -A meshes=([ring]=context=4 [zigzag]=context=4 [allgather]=context=4 [ulysses]=context=4
  [hybrid]=context=2,ulysses=2)
modes=(ring zigzag allgather ulysses hybrid)
python3 "$here/make_data.py" "$work" $sequence
shoal-model llama --config "$here/config.json" --batch 1 --seq $sequence -o "$work/model.mlir"

train() { # train RANKS NAME [options of shoalc]
  quietly "$work/$2.remarks" shoalc "$work/model.mlir" -o "$work/$2" \
    --dtype f64 --optimizer adamw --lr 3e-3 --report "$work/$2.promised.json" "${@:3}"
  quietly "$work/$2.log" timeout 600 shoal-run -n "$1" "$work/$2" --data input_ids="$work/input_ids.npy" \
    --data labels="$work/labels.npy" --steps "$steps" --shuffle --seed 1 --no-progress \
    --metrics "$work/$2.jsonl" --report "$work/$2.json" --dump-params "$work/$2.safetensors"
}
echo "== $steps steps of $sequence tokens in f64 on one rank, then on 4 in ${#modes[@]} modes"
train 1 one
for mode in "${modes[@]}"; do train 4 "$mode" --mesh "${meshes[$mode]}" --context-parallel "$mode"; done
python3 "$here/tables.py" "$work" "${modes[@]}" || status=1
finish
