#!/usr/bin/env bash
# Trains a toy model with Adam on one rank, and on four under data parallelism and the three stages of ZeRO. Prints, per
# stage, how far the losses are from those of one rank, and the bytes that a rank holds and sends, counted by the run, beside the
# formulas. Fails when a bound that it prints is missed.
#   examples/zero/run.sh
# STEPS=320 says how long, WORK=build/zero where files go. The tools are those on PATH, or else of build/bin.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
begin zero shoalc shoal-run
steps=${STEPS:-320}
ranks=4

train() { # train RANKS NAME [options of shoalc]
  quietly "$work/$2.remarks" shoalc "$here/toy.mlir" -o "$work/$2" --optimizer adam --lr 1e-3 "${@:3}"
  quietly "$work/$2.log" timeout 600 shoal-run -n "$1" "$work/$2" --data x="$here/x.npy" --data y="$here/y.npy" \
    --steps "$steps" --shuffle --seed 1 --no-progress --log-every "$steps" \
    --metrics "$work/$2.jsonl" --report "$work/$2.json"
}
echo "== $steps steps on one rank, then on $ranks under stages 0 (data parallelism) to 3"
train 1 one
for stage in 0 1 2 3; do train "$ranks" "zero$stage" --mesh data=$ranks --zero $stage; done

echo "== losses beside those of one rank"
for stage in 0 1 2 3; do
  differences="largest relative difference, first 50 steps %.1e (bound %.0e), all %d steps %.1e"
  beside_one zero$stage "  stage $stage: loss %.7f at the end; $differences"
done

# The parts of rank 0 in a report, as NAME BYTES; `sent` is the sum over its collectives.
parts() {
  awk '/"rank":/ { if (rank++) exit }
    /"(params|grads|optimizer|activations|workspace|peak)":/ { gsub(/[",:]/, ""); print $1, $2 }
    /"bytes": [0-9]/ { gsub(/,/, ""); sent += $2 }
    END { print "sent", sent + 0 }' "$1"
}
echo "== bytes of a rank, counted, with the formula behind: P parameters of 4 bytes, Adam's two moments, N = $ranks ranks"
row() { printf '  %-5s  %-20s  %-22s  %-22s  %-42s  %-7s\n' "$@"; }
row stage parameters gradients 'optimizer state' 'sent in a step' peak
for stage in 0 1 2 3; do
  parts "$work/zero$stage.json" | awk -v stage=$stage -v n=$ranks '
    { got[$1] = $2 }
    # What was counted beside what the formula says: no less, and no more than buckets of whole elements per rank, the
    # count of steps and the loss add.
    function beside(part, bytes, text) {
      if (got[part] < bytes || got[part] > bytes + 96) missed = missed " " part
      return sprintf("%d (%s = %d)", got[part], text, bytes + 0.5)
    }
    END {
      P = 16 * 512 + 512 + 512 * 10 + 10
      again = 512 * 10 # of stage 3: backward reads w2 again, and neither w1 nor the biases
      print stage
      print stage < 3 ? beside("params", 4 * P, "4P") : beside("params", 4 * P / n, "4P/N")
      print stage < 2 ? beside("grads", 4 * P, "4P") : beside("grads", 4 * P / n, "4P/N")
      print stage < 1 ? beside("optimizer", 8 * P, "8P") : beside("optimizer", 8 * P / n, "8P/N")
      print beside("sent", (n - 1) / n * (8 * P + (stage == 3) * 4 * again), stage == 3 ? "(8P + 4*5120)(N-1)/N" : "8P(N-1)/N")
      print got["peak"]
      if (missed) { print "missed:" missed > "/dev/stderr"; exit 1 }
    }' >"$work/row" || status=1
  mapfile -t columns <"$work/row"
  row "${columns[@]}"
done
finish
