#!/usr/bin/env bash
# Trains the digits example on 4 ranks and on 1, and shows that they agree and that it learns.
# Fails when a bound that it prints is missed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

bootstrap
configure -DSHOAL_SANITIZE=OFF
build shoalc shoal-opt shoal-run shoal-rt-main shoal-model shoal-data shoal-ckpt

PATH=$BUILD_DIR/bin:$PATH
digits=$SHOAL_ROOT/examples/digits
work=$BUILD_DIR/demo
judge=(python3 "$SHOAL_ROOT/test/support/digits.py")
rm -rf "$work"
mkdir -p "$work"

optimizer=(--optimizer sgd --lr 0.2)
data=(--data "x=$digits/train_x.npy" --data "y=$digits/train_y.npy")
training=(--epochs 20 --seed 1 --shuffle --no-progress)
limit=(timeout 600)

say "compile examples/digits/digits.mlir"
compile() { # compile OUTPUT [options]
  local start=$EPOCHREALTIME
  shoalc "$digits/digits.mlir" -o "$work/$1" "${@:2}"
  printf '  shoalc %-52s %5.2f s\n' "${*:2}" "$(seconds "$start" "$EPOCHREALTIME")"
}
seconds() { awk -v a="$1" -v b="$2" 'BEGIN { print b - a }'; }
compile four --mesh data=4 "${optimizer[@]}"
compile one "${optimizer[@]}"
compile four-f64 --mesh data=4 --dtype f64 "${optimizer[@]}"
compile one-f64 --dtype f64 "${optimizer[@]}"
compile score --mode infer

say "train: 1,437 images, 20 epochs, batches of 32, on 4 ranks and on 1"
train() { # train RANKS PROGRAM
  "${limit[@]}" shoal-run -n "$1" "$work/$2" "${data[@]}" "${training[@]}" \
    --metrics "$work/$2.jsonl" --dump-params "$work/$2.safetensors" >"$work/$2.log" 2>&1 ||
    { cat "$work/$2.log" >&2 && die "training $2 failed"; }
}
train 4 four
train 1 one
train 4 four-f64
train 1 one-f64

status=0
echo "  loss, mean of each epoch (f32)"
"${judge[@]}" compare "$work/four.jsonl" "$work/one.jsonl" --names "4 ranks,1 rank" --table --falling \
  --first 50 --step-tolerance 1e-5 --epoch-tolerance 1e-3 || status=1
echo "  the same in f64"
"${judge[@]}" compare "$work/four-f64.jsonl" "$work/one-f64.jsonl" --all-tolerance 1e-10 || status=1

say "score the 360 test images with what 4 ranks learned"
"${limit[@]}" shoal-run -n 1 "$work/score" --no-progress --data "x=$digits/test_x.npy" \
  --load "$work/four.safetensors" --output "logits=$work/logits.npy" >"$work/score.log" 2>&1 ||
  { cat "$work/score.log" >&2 && die "scoring failed"; }
"${judge[@]}" accuracy "$work/logits.npy" "$digits/test_y.npy" --at-least 0.95 || status=1

if ((status)); then die "a bound was missed"; fi
say "all bounds hold; files are in $work"
