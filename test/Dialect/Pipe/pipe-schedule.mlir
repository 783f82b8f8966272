// RUN: shoal-opt %s --pipe-schedule="schedule=1f1b ranks=2 microbatches=2 optimizer=update" --pipe-verify | FileCheck %s
// RUN: shoal-opt %s --pipe-schedule="schedule=zb-v ranks=2 microbatches=3 messages=false symbol=vee" --pipe-verify | FileCheck %s --check-prefix=VEE
// RUN: shoal-opt %s --pipe-schedule="schedule=interleaved ranks=2 microbatches=2 messages=false optimizer=norm" --pipe-verify | FileCheck %s --check-prefix=CHUNKS
// RUN: shoal-opt %s --pipe-schedule="schedule=zb-h2 ranks=2 microbatches=4 messages=false backward-weight=0" --pipe-verify | FileCheck %s --check-prefix=COSTS
// RUN: shoal-opt %s --pipe-schedule="file=%S/Inputs/by-hand.txt messages=false" --pipe-verify | FileCheck %s --check-prefix=FILE
// RUN: shoal-opt %s --pipe-schedule="file=%S/Inputs/by-hand.json ranks=2 microbatches=2" --pipe-verify | FileCheck %s --check-prefix=DERIVED
// RUN: shoal-opt %s --pipe-schedule="file=%S/Inputs/by-hand.txt messages=false optimizer=norm" --pipe-verify | FileCheck %s --check-prefix=NORM

// Sends and receives follow from dependencies.
// CHECK-LABEL: pipe.schedule @schedule placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
// CHECK-NEXT: "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 U",
// CHECK-NEXT: "RF0<0 F0 RF1<0 B0 SB0>0 F1 B1 SB1>0 U"

// Two chunks are zb-v's own number.
// VEE-LABEL: pipe.schedule @vee placement = vee microbatches = 3 chunks = 2 peak = [4, 4] ranks [
// VEE-NEXT: "F0 F1 F2 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 I0 W0 F2.1 I2.1 W2.1 I1 W1 I2 W2",
// VEE-NEXT: "F0 F0.1 F1 F1.1 I0.1 W0.1 F2 I0 W0 F2.1 I1.1 W1.1 I1 I2.1 I2 W1 W2.1 W2"

// The update waits for the norm of all ranks.
// CHUNKS-LABEL: pipe.schedule @schedule placement = loop microbatches = 2 chunks = 2 peak = [4, 3] ranks [
// CHUNKS-NEXT: "F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1 N U",
// CHUNKS-NEXT: "F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1 N U"

// Gradients of weights that cost nothing fill no bubble.
// COSTS: peak = [3, {{[0-9]}}]

// A file's own peak and order.
// FILE: peak = [2, 2] ranks [
// FILE-NEXT: "F0 F1 B1 B0",
// DERIVED: chunks = 1 ranks [
// DERIVED-NEXT: "F0 SF0>1 F1 {SF1>1 RB1<1} B1 RB0<1 B0",

// And behind it what the step has.
// NORM: peak = [2, 2] ranks [
// NORM-NEXT: "F0 F1 B1 B0 N U",
module {}
