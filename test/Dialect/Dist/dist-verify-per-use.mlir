// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-verify-local

// What lies flat per_use is gathered for each use: nothing that is made of it alone lives, whole, from one part of the step
// to another, or over micro-batches.

dist.mesh @mesh <["data"=2]>
func.func @right(%x: tensor<4x4xf32> {nn.input = "x"},
                 %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %2 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %g = nn.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Also in another type and shape.
dist.mesh @mesh <["data"=2]>
func.func @kept(%x: tensor<4x4xf32> {nn.input = "x"},
                %p: tensor<8xf64> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<16xf64>>]>, dist.global = #dist.global<1, tensor<16xf64>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %s = nn.cast %p : tensor<8xf64> -> tensor<8xf32>
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %s {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %u = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<16xf32>
  %w = nn.reshape %u : tensor<16xf32> -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

dist.mesh @mesh <["data"=2]>
func.func @over_microbatches(%x: tensor<8x4xf32> {nn.input = "x"},
                             %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{puts parameter "bucket.0" together for all micro-batches: what lies flat per_use is gathered in each}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %l = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    // expected-note @+1 {{read here}}
    %1 = nn.matmul %m, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
    dist.yield %2 : tensor<f32>
  } : (tensor<8x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A gather for the backward pass beside that for the forward pass.
dist.mesh @mesh <["data"=2]>
func.func @hoisted(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  // expected-error @+1 {{keeps parameter "bucket.0" whole through the forward pass for the backward pass: gather it behind the last op of the forward pass that reads a parameter}}
  %1 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %v = dist.unpack %1[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{a parameter is read by the forward pass here}}
  %2 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %2, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// A gather for the backward pass in front of the last layer of the forward pass.
dist.mesh @mesh <["data"=2]>
func.func @between_layers(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>},
    %q: tensor<8xf32> {nn.param = #nn.param<"bucket.1", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"v", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<2, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @+1 {{keeps parameter "bucket.0" whole through the forward pass for the backward pass: gather it behind the last op of the forward pass that reads a parameter}}
  %2 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %3 = dist.all_gather {"data"} dim = 0 %q {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %3[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{a parameter is read by the forward pass here}}
  %4 = nn.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %4 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %5 = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %4, %5 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// As soon as the forward pass has read its last parameter, the gathers of the backward pass may start.
dist.mesh @mesh <["data"=2]>
func.func @ahead(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>},
    %q: tensor<8xf32> {nn.param = #nn.param<"bucket.1", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"v", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<2, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %1 = dist.all_gather {"data"} dim = 0 %q {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %2 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = dist.unpack %1[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %3 = nn.matmul %2, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = dist.all_gather {"data"} dim = 0 %q {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %5 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %l = nn.reduce sum %3 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %6 = dist.unpack %4[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %7 = nn.matmul %3, %6 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %8 = dist.unpack %5[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %g = nn.matmul %7, %8 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// The same in another type.
dist.mesh @mesh <["data"=2]>
func.func @cast(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %c = nn.cast %w : tensor<4x4xf32> -> tensor<4x4xbf16>
  %y = nn.cast %x : tensor<4x4xf32> -> tensor<4x4xbf16>
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %y, %c : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %2 = nn.cast %1 : tensor<4x4xbf16> -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %h = nn.matmul %1, %c : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %g = nn.cast %h : tensor<4x4xbf16> -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// The same in another order, times a constant: made for the forward pass, and read by the backward pass alone.
dist.mesh @mesh <["data"=2]>
func.func @transposed(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %t = nn.transpose %w [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %c = nn.constant dense<2.0> : tensor<f32>
  %s = nn.mul %t, %c : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Made of the tensor by two ways that meet again.
dist.mesh @mesh <["data"=2]>
func.func @normalized(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %s = nn.reduce sum %w dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %t = nn.mul %w, %s : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// The copy of another device.
dist.mesh @mesh <["data"=2]>
func.func @permuted(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %1 = dist.collective_permute {"data"} from [0, 1] to [1, 0] %0 {reason = "swapped"} : tensor<16xf32>
  %w = dist.unpack %1[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %2 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %2, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// In a bucket with something else, out of which it is taken again.
dist.mesh @mesh <["data"=2]>
func.func @packed(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %b = dist.pack %x[0:16], %0[0:16] group 0 at 0 : (tensor<4x4xf32>, tensor<16xf32>) -> tensor<32xf32>
  %y = dist.unpack %b[0:16] : (tensor<32xf32>) -> tensor<4x4xf32>
  %w = dist.unpack %b[16:32] : (tensor<32xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %2 = nn.matmul %y, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %2, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Put together of the shards that devices send each other.
dist.mesh @mesh <["data"=2]>
func.func @ring(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.collective_permute {"data"} from [0, 1] to [1, 0] %p {reason = "ring"} : tensor<8xf32>
  %b = dist.pack %p[0:8], %0[0:8] group 0 at 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %w = dist.unpack %b[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %2 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %2, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// What is no more than a shard may live: a part of what was gathered, and a sum.
dist.mesh @mesh <["data"=2]>
func.func @shards(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %s = dist.all_slice {"data"} dim = 0 %0 {reason = "kept"} : tensor<16xf32> -> tensor<8xf32>
  %n = nn.reduce sum %0 dims = [0] : tensor<16xf32> -> tensor<f32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = nn.mul %1, %n : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %3 = dist.all_gather {"data"} dim = 0 %s {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %3[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %4 = nn.matmul %2, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = nn.mul %4, %n : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Over the backward pass of a micro-batch, for the forward pass of the next one.
dist.mesh @mesh <["data"=2]>
func.func @unrolled(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>},
    %q: tensor<8xf32> {nn.param = #nn.param<"bucket.1", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"v", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<2, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "first"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @+1 {{keeps parameter "bucket.0" whole through the backward pass for the forward pass: gather it behind the last op of the backward pass that reads a parameter}}
  %2 = dist.all_gather {"data"} dim = 0 %p {reason = "second"} : tensor<8xf32> -> tensor<16xf32>
  %3 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %3[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{a parameter is read by the backward pass here}}
  %g = nn.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %u = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %4 = nn.matmul %1, %u : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %4 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Nor to what is neither: a metric.
dist.mesh @mesh <["data"=2]>
func.func @update(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}, tensor<f32> {nn.metric = "mean"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the backward pass to the update}}
  %2 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the update here}}
  %n = nn.matmul %x, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = nn.reduce sum %n dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %l, %g, %m : tensor<f32>, tensor<4x4xf32>, tensor<f32>
}

// -----

// As an input of micro-batches, too.
dist.mesh @mesh <["data"=2]>
func.func @input_of_microbatches(
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<0, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{puts parameter "bucket.0" together for all micro-batches: what lies flat per_use is gathered in each}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "once"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read here}}
  %l = dist.accumulate(%w) microbatches = 2 {
  ^bb0(%m: tensor<2x4xf32>):
    %2 = nn.reduce sum %m dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
    dist.yield %2 : tensor<f32>
  } : (tensor<4x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A sum of it that is made late.
dist.mesh @mesh <["data"=2]>
func.func @late_sum(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %2 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %3 = nn.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read here}}
  %s = nn.reduce sum %0 dims = [0] : tensor<16xf32> -> tensor<f32>
  %g = nn.mul %3, %s : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// As the result of a branch.
dist.mesh @mesh <["data"=2]>
func.func @branch(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %yes = arith.constant true
  %z = scf.if %yes -> (tensor<4x4xf32>) {
    scf.yield %w : tensor<4x4xf32>
  } else {
    scf.yield %x : tensor<4x4xf32>
  }
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %z : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// By some devices, carried through a loop.
dist.mesh @mesh <["data"=2]>
func.func @carried(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %here = dist.axis_index {"data"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %first = arith.cmpi eq, %here, %zero : index
  %z = scf.for %i = %zero to %two step %one iter_args(%before = %x) -> (tensor<4x4xf32>) {
    %either = scf.if %first -> (tensor<4x4xf32>) {
      scf.yield %before : tensor<4x4xf32>
    } else {
      scf.yield %w : tensor<4x4xf32>
    }
    scf.yield %either : tensor<4x4xf32>
  }
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %z : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// A branch that gives what is gathered behind the forward pass, of a shard that another gave.
dist.mesh @mesh <["data"=2]>
func.func @branches_of_shards(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %yes = arith.constant true
  %s = scf.if %yes -> (tensor<8xf32>) {
    %mine = dist.all_slice {"data"} dim = 0 %0 {reason = "kept"} : tensor<16xf32> -> tensor<8xf32>
    scf.yield %mine : tensor<8xf32>
  } else {
    scf.yield %p : tensor<8xf32>
  }
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %v = scf.if %yes -> (tensor<4x4xf32>) {
    %2 = dist.all_gather {"data"} dim = 0 %s {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
    %u = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
    scf.yield %u : tensor<4x4xf32>
  } else {
    scf.yield %x : tensor<4x4xf32>
  }
  %g = nn.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// As the result of a group.
dist.mesh @mesh <["data"=2]>
func.func @group(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %z = dist.group {
    dist.yield %w : tensor<4x4xf32>
  } : tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %1, %z : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// As the sum of what micro-batches gather.
dist.mesh @mesh <["data"=2]>
func.func @summed(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}, tensor<f32> {nn.metric = "mean"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole through the forward pass for the update: gather it behind the last op of the forward pass that reads a parameter}}
  %l, %g, %z = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<2x4xf32>):
    %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
    %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
    // expected-note @+1 {{a parameter is read by the forward pass here}}
    %1 = nn.matmul %m, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %2 = nn.reduce sum %1 dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %3 = nn.matmul %m, %1 {transpose_a} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    dist.yield %2, %3, %w : tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>)
  // expected-note @+1 {{read by the update here}}
  %n = nn.matmul %x, %z : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %mean = nn.reduce sum %n dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %l, %g, %mean : tensor<f32>, tensor<4x4xf32>, tensor<f32>
}

// -----

// In halves, each of which is no more than a share.
dist.mesh @mesh <["data"=2]>
func.func @halves(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{brings parameter "bucket.0", of which 16 elements are kept from the forward pass to the backward pass, more than a device's share of 8: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{8 of them are kept here}}
  %h0 = nn.slice %w dim = 0 start = 0 : tensor<4x4xf32> -> tensor<2x4xf32>
  // expected-note @+1 {{8 of them are kept here}}
  %h1 = nn.slice %w dim = 0 start = 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %2 = nn.matmul %1, %h0 {transpose_b} : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = nn.matmul %2, %h1 : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %g = nn.matmul %1, %3 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// One of them, and its rows as a view, which is no copy; the other is gathered again.
dist.mesh @mesh <["data"=2]>
func.func @half(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %h0 = nn.slice %w dim = 0 start = 0 : tensor<4x4xf32> -> tensor<2x4xf32>
  %rows = nn.reshape %h0 : tensor<2x4xf32> -> tensor<4x2xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %2 = dist.all_gather {"data"} dim = 0 %p {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>
  %v = dist.unpack %2[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %h1 = nn.slice %v dim = 0 start = 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  %3 = nn.matmul %1, %rows : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %4 = nn.matmul %3, %h0 : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %5 = nn.matmul %4, %h1 {transpose_b} : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
  %g = nn.matmul %5, %h0 : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Element by element out of the bucket: of all that it holds a share.
dist.mesh @mesh <["data"=2]>
func.func @elements(%x: tensor<2x2xf32> {nn.input = "x"},
    %p: tensor<2xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<2x2xf32>>]>, dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<2x2xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{brings parameter "bucket.0", of which 3 elements are kept from the forward pass to the backward pass, more than a device's share of 2}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<2xf32> -> tensor<4xf32>
  %w = dist.unpack %0[0:4] : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-note @+1 {{1 of them are kept here}}
  %e0 = dist.unpack %0[0:1] : (tensor<4xf32>) -> tensor<f32>
  // expected-note @+1 {{1 of them are kept here}}
  %e1 = dist.unpack %0[1:2] : (tensor<4xf32>) -> tensor<f32>
  // expected-note @+1 {{1 of them are kept here}}
  %e2 = dist.unpack %0[2:3] : (tensor<4xf32>) -> tensor<f32>
  %1 = nn.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<2x2xf32> -> tensor<f32>
  %m0 = nn.mul %1, %e0 : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %m1 = nn.mul %m0, %e1 : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %g = nn.mul %m1, %e2 : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %l, %g : tensor<f32>, tensor<2x2xf32>
}

// -----

// As many elements as the share.
dist.mesh @mesh <["data"=2]>
func.func @share_of_elements(%x: tensor<2x2xf32> {nn.input = "x"},
    %p: tensor<2xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<2x2xf32>>]>, dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<2x2xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<2xf32> -> tensor<4xf32>
  %w = dist.unpack %0[0:4] : (tensor<4xf32>) -> tensor<2x2xf32>
  %e0 = dist.unpack %0[0:1] : (tensor<4xf32>) -> tensor<f32>
  %e1 = dist.unpack %0[1:2] : (tensor<4xf32>) -> tensor<f32>
  %1 = nn.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<2x2xf32> -> tensor<f32>
  %m0 = nn.mul %1, %e0 : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %g = nn.mul %m0, %e1 : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %l, %g : tensor<f32>, tensor<2x2xf32>
}

// -----

// Other devices' shards, one by one.
dist.mesh @mesh <["data"=4]>
func.func @shards_of_others(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<4xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+2 {{brings parameter "bucket.0", of which 12 elements are kept from the forward pass to the backward pass, more than a device's share of 4}}
  // expected-note @+1 {{4 of them are kept here}}
  %s1 = dist.collective_permute {"data"} from [0, 1, 2, 3] to [1, 2, 3, 0] %p {reason = "ring"} : tensor<4xf32>
  // expected-note @+1 {{4 of them are kept here}}
  %s2 = dist.collective_permute {"data"} from [0, 1, 2, 3] to [2, 3, 0, 1] %p {reason = "ring"} : tensor<4xf32>
  // expected-note @+1 {{4 of them are kept here}}
  %s3 = dist.collective_permute {"data"} from [0, 1, 2, 3] to [3, 0, 1, 2] %p {reason = "ring"} : tensor<4xf32>
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<4xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %m1 = nn.mul %1, %s1 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %m2 = nn.mul %m1, %s2 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %g = nn.mul %m2, %s3 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// One of them.
dist.mesh @mesh <["data"=4]>
func.func @shard_of_another(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<4xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %s1 = dist.collective_permute {"data"} from [0, 1, 2, 3] to [1, 2, 3, 0] %p {reason = "ring"} : tensor<4xf32>
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<4xf32> -> tensor<16xf32>
  %w = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %g = nn.mul %1, %s1 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// Gathered twice, it is one parameter: its sum with itself is made of it alone.
dist.mesh @mesh <["data"=2]>
func.func @with_itself(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward pass to the backward pass: what lies flat per_use is gathered for each of them}}
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "first"} : tensor<8xf32> -> tensor<16xf32>
  %1 = dist.all_gather {"data"} dim = 0 %p {reason = "second"} : tensor<8xf32> -> tensor<16xf32>
  %a = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %b = dist.unpack %1[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %w = nn.add %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-note @+1 {{read by the forward pass here}}
  %2 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  // expected-note @+1 {{read by the backward pass here}}
  %g = nn.matmul %2, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// The sum of two parameters is a value of the model, as what is computed of a parameter and data is.
dist.mesh @mesh <["data"=2]>
func.func @sum_of_two(%x: tensor<4x4xf32> {nn.input = "x"},
    %p: tensor<8xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<1, tensor<16xf32>, <@mesh, [{"data"}]>>},
    %q: tensor<8xf32> {nn.param = #nn.param<"bucket.1", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.bucket = #dist.bucket<[<#nn.param<"v", init = zeros>, tensor<4x4xf32>>]>, dist.global = #dist.global<2, tensor<16xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "w"}) {
  %0 = dist.all_gather {"data"} dim = 0 %p {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %1 = dist.all_gather {"data"} dim = 0 %q {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
  %a = dist.unpack %0[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %b = dist.unpack %1[0:16] : (tensor<16xf32>) -> tensor<4x4xf32>
  %w = nn.add %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %g = nn.matmul %2, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %l, %g : tensor<f32>, tensor<4x4xf32>
}
