# What the examples' run.sh share. Source it, then `begin NAME TOOL...`.
# shellcheck shell=bash

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
status=0 # 1 where a bound was missed

# begin NAME TOOL...: $here is the example's folder, $work (WORK, or build/NAME) is made, and the tools are those on
# PATH, or else of build/bin.
begin() {
  here=$root/examples/$1
  work=${WORK:-$root/build/$1}
  export PATH=$PATH:$root/build/bin
  local tool
  for tool in "${@:2}"; do
    if ! command -v "$tool" >/dev/null; then
      echo "run.sh: no $tool on PATH, nor in $root/build/bin, where scripts/demo.sh builds it" >&2
      exit 2
    fi
  done
  mkdir -p "$work"
}

# quietly FILE COMMAND...: what it says goes to FILE, and is shown where it fails.
quietly() { "${@:2}" >"$1" 2>&1 || { cat "$1" >&2 && exit 1; }; }

# losses PROGRAM: those of its steps, one a line
losses() { sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/$1.jsonl"; }

# beside_one PROGRAM FORMAT: the losses of a program beside those of program `one`. FORMAT is printf's, of the last
# loss, the largest relative difference in the first 50 steps, its bound, the number of steps, the difference in all.
beside_one() {
  paste <(losses one) <(losses "$1") | awk -v format="$2" -v bound=1e-5 '
    { d = ($1 - $2) / $1; if (d < 0) d = -d; if (NR <= 50 && d > first) first = d; if (d > all) all = d; last = $2 }
    END { printf format "\n", last, first, bound, NR, all; exit !(NR && first <= bound) }' || status=1
}

finish() {
  if ((status)); then
    echo "run.sh: a bound was missed" >&2
    exit 1
  fi
  echo "== all bounds hold; files are in $work"
}
