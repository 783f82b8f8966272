#!/usr/bin/env bash
# Trains a byte-level GPT on one rank and on four (data=2,tensor=2 with sequence parallelism), compares the two, and lets what
# the four have learned write. Fails when a bound that it prints is missed.
#   examples/gpt/run.sh [TEXT...]     (default: the licence texts that every Debian system has)
# STEPS=800 says how long, WORK=build/gpt where files go. The tools are those on PATH, or else of build/bin.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
begin gpt shoal-data shoal-model shoalc shoal-run
steps=${STEPS:-800}
(($#)) || set -- /usr/share/common-licenses/*

echo "== tokens of $# files"
shoal-data bytes "$@" --seq 128 -o "$work/data"

echo "== the model, for both plans and for inference"
shoal-model gpt2 --config "$here/config.json" --batch 4 --seq 128 -o "$work/gpt.mlir"
optimizer=(--optimizer adamw --lr 3e-3 --betas 0.9,0.99 --clip-grad-norm 1
  --lr-schedule cosine --warmup-steps $((steps / 16 + 1)) --decay-steps "$steps")
plan=(--mesh data=2,tensor=2 --tensor-parallel --sequence-parallel)
shoalc "$work/gpt.mlir" -o "$work/one" "${optimizer[@]}"
quietly "$work/four.remarks" shoalc "$work/gpt.mlir" -o "$work/four" "${plan[@]}" "${optimizer[@]}"
shoal-model gpt2 --config "$here/config.json" --batch 1 --seq 128 -o "$work/write.mlir" # a step is a token of each row
shoalc "$work/write.mlir" -o "$work/write" --mode infer

train() { # train RANKS PROGRAM
  echo "== $steps steps on $1 rank(s)"
  timeout 1800 shoal-run -n "$1" "$work/$2" --steps "$steps" --seed 1 --shuffle --no-progress --log-every $((steps / 8 + 1)) \
    --data input_ids="$work/data/train_input_ids.npy" --data labels="$work/data/train_labels.npy" \
    --eval-data input_ids="$work/data/val_input_ids.npy" --eval-data labels="$work/data/val_labels.npy" \
    --eval-every "$steps" --metrics "$work/$2.jsonl" --dump-params "$work/$2.safetensors"
}
train 1 one
train 4 four

echo "== the plans side by side"
differences='largest relative difference of the loss, first 50 steps %.1e (bound %.0e), all %d steps %.1e'
beside_one four "  loss %.3f at the end; $differences"
for program in one four; do
  sed -n 's/.*"eval_loss":\([^,}]*\).*/\1/p' "$work/$program.jsonl" | tail -1 | awk -v program="$program" -v bound=2.5 '
    { printf "  %-4s loss of a byte on held out samples %.3f (bound %.1f, uniform %.3f)\n", program, $1, bound, log(256); loss = $1 }
    END { exit !(NR && loss < bound) }' || status=1
done

echo "== what it writes"
timeout 600 shoal-run -n 1 "$work/write" --load "$work/four.safetensors" --generate 400 --prompt "You may copy and distribute" \
  --temperature 0.8 --top-k 40 --seed 3 --no-progress
finish
