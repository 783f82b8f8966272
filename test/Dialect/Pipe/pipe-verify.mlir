// RUN: shoal-opt %s --split-input-file --pipe-verify --verify-diagnostics

// Without sends and receives a schedule is judged by its dependencies alone.
pipe.schedule @bare placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks ["F0 F1 B0 B1", "F0 B0 F1 B1"]
pipe.schedule @whole placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
  "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 N U",
  "RF0<0 F0 B0 {SB0>0 RF1<0} F1 B1 SB1>0 N U"
]

// -----

// Both ranks send, then receive.
// expected-error @+3 {{the ranks wait for each other in a circle: rank 0: SF1>1 -> rank 1: SB0>0 -> rank 0: SF1>1}}
// expected-note @+2 {{rank 0: SF1>1 waits for rank 1, which is at SB0>0}}
// expected-note @+1 {{rank 1: SB0>0 waits for rank 0, which is at SF1>1}}
pipe.schedule @crossed placement = loop microbatches = 2 chunks = 1 ranks [
  "F0 SF0>1 F1 SF1>1 RB0<1 B0 RB1<1 B1",
  "RF0<0 F0 B0 SB0>0 RF1<0 F1 B1 SB1>0"
]

// -----

// No order of messages helps: rank 0 wants a cotangent for which rank 1 waits to see another micro-batch first.
// expected-error @+3 {{the order of actions has a cycle: rank 0: B0 -> rank 1: F1 -> rank 0: B0}}
// expected-note @+2 {{rank 0: B0 waits for rank 1: B0, which stands behind F1}}
// expected-note @+1 {{rank 1: F1 waits for rank 0: F1, which stands behind B0}}
pipe.schedule @cycle placement = loop microbatches = 2 chunks = 1 ranks ["F0 B0 F1 B1", "F1 F0 B0 B1"]

// -----

// A gradient that is never summed.
// expected-error @+1 {{rank 1: W1 is missing: the gradients of micro-batch 1 never reach the sum}}
pipe.schedule @missing_w placement = loop microbatches = 2 chunks = 1 ranks ["F0 F1 B0 B1", "F0 I0 F1 I1 W0"]

// -----

// expected-error @+1 {{rank 0: B0 stands before F0, or that is missing}}
pipe.schedule @backward_first placement = loop microbatches = 1 chunks = 1 ranks ["B0 F0"]

// -----

// expected-error @+1 {{rank 0: F0@1 is of stage 1, which lies on rank 1}}
pipe.schedule @wrong_rank placement = loop microbatches = 1 chunks = 1 ranks ["F0 B0 F0@1", "B0"]

// -----

// expected-error @+1 {{rank 1: RF0<0 has no counterpart: rank 0 never sends it}}
pipe.schedule @unmatched placement = loop microbatches = 1 chunks = 1 ranks ["F0 RB0<1 B0", "RF0<0 F0 B0 SB0>0"]

// -----

// expected-error @+1 {{rank 0: F1 is the stash of 2 micro-batches at once, above the stated peak of 1}}
pipe.schedule @peak placement = loop microbatches = 2 chunks = 1 peak = [1, 1] ranks ["F0 F1 B0 B1", "F0 B0 F1 B1"]

// -----

// Forward passes alone will do for a step without gradients, and for no other.
// expected-error @+1 {{rank 0: B0 is missing (or I and W)}}
pipe.schedule @forward placement = loop microbatches = 1 chunks = 1 ranks ["F0", "F0"]
func.func @step(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "w"}) {
  %loss = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss, %w : tensor<f32>, tensor<4xf32>
}

// -----

pipe.schedule @forward placement = loop microbatches = 1 chunks = 1 ranks ["F0", "F0"]
func.func @step(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %loss = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
