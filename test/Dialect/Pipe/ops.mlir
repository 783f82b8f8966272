// RUN: shoal-opt %s --verify-roundtrip | FileCheck %s

// A line per rank, as it is written.
// CHECK-LABEL: pipe.schedule @one_f_one_b placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
// CHECK-NEXT: "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 U",
// CHECK-NEXT: "RF0<0 F0 B0 {SB0>0 RF1<0} F1 B1 SB1>0 U"
// CHECK-NEXT: ]
pipe.schedule @one_f_one_b placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
  "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 U",
  "RF0<0 F0 B0 {SB0>0 RF1<0} F1 B1 SB1>0 U"
]

// Without a peak; a letter in lower case is of the rank's second chunk, which runs back here.
// CHECK-LABEL: pipe.schedule @vee placement = vee microbatches = 1 chunks = 2 ranks [
// CHECK-NEXT: "F0 f0 i0 I0 w0 W0"
// CHECK-NEXT: ] attributes {nn.layer = "h.0"}
pipe.schedule @vee placement = vee microbatches = 1 chunks = 2 ranks ["F0 f0 i0 I0 w0 W0"] attributes {nn.layer = "h.0"}

// What cannot run is still a schedule: pipe-verify refuses it.
// CHECK-LABEL: pipe.schedule @lacking
pipe.schedule @lacking placement = loop microbatches = 2 chunks = 1 ranks ["F0 B1", ""]

// The stage of an op is an attribute.
// CHECK-LABEL: func @staged
// CHECK: nn.relu %{{.*}} {pipe.stage = 3 : i64}
func.func @staged(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.relu %x {pipe.stage = 3} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The placement is an attribute of the dialect.
// CHECK: pipe.schedule @generic placement = vee
"pipe.schedule"() <{sym_name = "generic", placement = #pipe<placement vee>, microbatches = 1 : i64, chunks = 1 : i64, ranks = ["F0 B0"]}> : () -> ()
