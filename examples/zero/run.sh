#!/usr/bin/env bash
# Trains a toy model with Adam on one rank, and on four under data parallelism and the three stages of ZeRO. Prints, per
# stage, how far the losses are from those of one rank, and the bytes that a rank holds and sends, counted by the run, beside the
# formulas. Fails when a bound that it prints is missed.
#   examples/zero/run.sh
# STEPS=320 says how long, WORK=build/zero where files go. The tools are those on PATH, or else of build/bin.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export PATH=$PATH:$root/build/bin
work=${WORK:-$root/build/zero}
steps=${STEPS:-320}
ranks=4
for tool in shoalc shoal-run; do
  command -v "$tool" >/dev/null || { echo "run.sh: no $tool on PATH, nor in $root/build/bin, where scripts/demo.sh builds it" >&2 && exit 2; }
done
mkdir -p "$work"

train() { # train RANKS NAME [options of shoalc]
  shoalc "$here/toy.mlir" -o "$work/$2" --optimizer adam --lr 1e-3 "${@:3}" 2>"$work/$2.remarks" ||
    { cat "$work/$2.remarks" >&2 && exit 1; }
  timeout 600 shoal-run -n "$1" "$work/$2" --data x="$here/x.npy" --data y="$here/y.npy" --steps "$steps" --shuffle --seed 1 \
    --no-progress --log-every "$steps" --metrics "$work/$2.jsonl" --report "$work/$2.json" >"$work/$2.log" 2>&1 ||
    { cat "$work/$2.log" >&2 && exit 1; }
}
echo "== $steps steps on one rank, then on $ranks under stages 0 (data parallelism) to 3"
train 1 one
for stage in 0 1 2 3; do train "$ranks" "zero$stage" --mesh data=$ranks --zero $stage; done

echo "== losses beside those of one rank"
losses() { sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/$1.jsonl"; }
status=0
for stage in 0 1 2 3; do
  paste <(losses one) <(losses zero$stage) | awk -v stage=$stage -v bound=1e-5 '
    { d = ($1 - $2) / $1; if (d < 0) d = -d; if (NR <= 50 && d > first) first = d; if (d > all) all = d; last = $2 }
    END {
      printf "  stage %d: loss %.7f at the end; largest relative difference, first 50 steps %.1e (bound %.0e), all %d steps %.1e\n", stage, last, first, bound, NR, all
      exit !(NR && first <= bound)
    }' || status=1
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
if ((status)); then
  echo "run.sh: a bound was missed" >&2
  exit 1
fi
echo "== all bounds hold; files are in $work"
