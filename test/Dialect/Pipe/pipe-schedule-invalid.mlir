// RUN: not shoal-opt %s --pipe-schedule="schedule=zb" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not shoal-opt %s --pipe-schedule="schedule=interleaved ranks=4 microbatches=13" 2>&1 | FileCheck %s --check-prefix=ROUNDS
// RUN: not shoal-opt %s --pipe-schedule="schedule=1f1b chunks=2" 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: not shoal-opt %s --pipe-schedule="ranks=-1" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not shoal-opt %s --pipe-schedule="optimizer=adam" 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// RUN: not shoal-opt %s --pipe-schedule="backward-weight=-1" 2>&1 | FileCheck %s --check-prefix=COST
// RUN: not shoal-opt %s --pipe-schedule="symbol=taken" 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not shoal-opt %s --pipe-schedule="file=%S/Inputs/broken.txt" 2>&1 | FileCheck %s --check-prefix=LINE
// RUN: not shoal-opt %s --pipe-schedule="file=%S/Inputs/by-hand.txt schedule=gpipe" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not shoal-opt %s --pipe-schedule="file=%S/Inputs/by-hand.txt microbatches=8" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not shoal-opt %s --pipe-schedule="file=%S/Inputs/absent.txt" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not shoal-opt %s --pipe-schedule="file=%S/Inputs/cycle.txt" 2>&1 | FileCheck %s --check-prefix=CYCLE
// RUN: printf 'F0 B0\nF0 B0 N\n' > %t.norm.txt
// RUN: not shoal-opt %s --pipe-schedule="file=%t.norm.txt optimizer=update" 2>&1 | FileCheck %s --check-prefix=NORM
// RUN: not shoal-opt %s --pipe-schedule="file=%t.norm.txt optimizer=sgd" 2>&1 | FileCheck %s --check-prefix=SGD

// Every refusal has the rule, the value, and what to do.
// NAME: error: schedule must be one of naive, gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, got: zb
// ROUNDS: error: interleaved works in max(1, M / P) rounds of equally many micro-batches: M must be divisible by 3 with 4 ranks, got: 13 micro-batches; take 12, or 1f1b
// CHUNKS: error: 1f1b takes 1 chunk per rank, got: 2; interleaved takes any number, zb-v 2
// RANKS: error: a schedule needs at least 1 of ranks, got: -1
// OPTIMIZER: error: optimizer must be none, update or norm, got: adam
// COST: error: backward-weight must be a duration from 0 to 1e15, got: -1
// SYMBOL: error: symbol must be a new name, got: taken
// LINE: error: {{.*}}broken.txt:2: unknown action 'Z1', expected F, B, I or W
// BOTH: error: the order is that of the file: schedule must not be said, got: gpipe
// OTHER: error: microbatches must be that of the file (2), got: 8
// ABSENT: error: cannot open input file '{{.*}}absent.txt'
// CYCLE: cycle.txt:1:0: error: the order of actions has a cycle: rank 0: B0 -> rank 1: F1 -> rank 0: B0
// NORM: norm.txt:2:0: error: rank 1: N is the exchange of the gradients' norm, for which no update of this step waits; leave it out, or clip by the norm (--clip-grad-norm)
// SGD: error: optimizer must be none, update or norm, got: sgd
func.func private @taken()
