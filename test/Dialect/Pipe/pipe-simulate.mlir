// RUN: shoal-opt %s --pipe-simulate -o /dev/null 2>&1 | FileCheck %s
// RUN: shoal-opt %s --pipe-simulate="forward=2 backward-input=2 backward-weight=1 transfer=0.5 norm=1 update=3 stash-bytes=100 weight-stash-bytes=10 message-bytes=7" -o /dev/null 2>&1 | FileCheck %s --check-prefix=COSTS
// RUN: not shoal-opt %s --pipe-simulate="html=%t.html" 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: echo 'module {}' | shoal-opt --pipe-schedule="schedule=zb-h1 ranks=4 microbatches=8" --pipe-simulate="html=%t.html trace=%t.json unit=ms" -o /dev/null 2>&1 | FileCheck %s --check-prefix=H1
// RUN: FileCheck %s --check-prefix=PAGE < %t.html
// RUN: %python -c 'import json, sys; events = json.load(open(sys.argv[1]))["traceEvents"]; print(sum(e["dur"] for e in events if e["ph"] == "X"))' %t.json | FileCheck %s --check-prefix=TRACE
// RUN: echo 'module {}' | not shoal-opt --pipe-schedule --pipe-simulate="html=%t.absent/page.html" 2>&1 | FileCheck %s --check-prefix=PATH
// RUN: not shoal-opt %s --pipe-simulate="unit=hours" 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: not shoal-opt %s --pipe-simulate="stash-bytes=-1" 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not shoal-opt %s --pipe-simulate="transfer=nan" 2>&1 | FileCheck %s --check-prefix=NAN

// The second rank has no idle time of its own, and 3 of the makespan.
// CHECK-LABEL: @step: 2 ranks, 2 micro-batches, 1 chunk per rank
// CHECK-NEXT: rank busy own idle idle bubble peak stash stash bytes
// CHECK-NEXT: 0 6 3 3 33.3% 2 0
// CHECK-NEXT: 1 6 0 3 33.3% 1 0
// CHECK-NEXT: makespan 9, bubble 33.3%, 4 messages of 0 bytes
// CHECK-LABEL: @split: 1 rank, 2 micro-batches, 1 chunk per rank

// The whole backward takes what its parts take, where it is not said.
// COSTS-LABEL: @step:
// COSTS: 0 10 6 6 37.5% 2 200
// COSTS: 4 messages of 28 bytes
// COSTS-LABEL: @split:
// COSTS: 0 13 1 1 7.1% 2 110

// TWO: error: a timeline is written of a module with one pipe.schedule, got: 2
// H1: makespan 27, bubble 11.1%, 48 messages of 0 bytes
// PAGE: <title>schedule · timeline · Shoal</title>
// PAGE: >27 ms</div>
// TRACE: 96000
// PATH: error: cannot write {{.*}}.absent/page.html: No such file or directory
// UNIT: error: unit must be s, ms, us or ns, got: hours
// BYTES: error: stash-bytes must be a number of bytes from 0 to 1099511627776, got: -1
// NAN: error: transfer must be a duration from 0 to 1e15, got: nan
pipe.schedule @step placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks ["F0 F1 B0 B1", "F0 B0 F1 B1"]
pipe.schedule @split placement = loop microbatches = 2 chunks = 1 ranks ["F0 I0 F1 I1 W0 W1 N U"]
