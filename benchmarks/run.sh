#!/usr/bin/env bash
# Prints the benchmarks' tables, each number with its bound, and ends with status 1 where one is missed;
# docs/benchmarks.md keeps a run of it.
#   benchmarks/run.sh [--rounds N] [--only large_step,small_step,gpt2,gpt2_bf16,gpt2_ranks,pipeline,pipeline_overhead,context,attention,all_reduce,overlap,memory,compile_time]
# PyTorch, which some tables compare with, is that of $SHOAL_TORCH_PYTHON, else Debian's python3-torch, which is installed;
# torch.compile and its pipelines need PyTorch 2.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

bootstrap
if [[ -z ${SHOAL_TORCH_PYTHON:-} ]] && ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  say "install python3-torch"
  as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-torch
fi
configure -DSHOAL_SANITIZE=OFF
build shoalc shoal-opt shoal-model shoal-run shoal-rt-main gemms-of-a-step attention all-reduce

PATH=$BUILD_DIR/bin:$PATH
say "benchmarks"
exec python3 "$SHOAL_ROOT/benchmarks/measure.py" "$@" --work "$BUILD_DIR/benchmarks"
