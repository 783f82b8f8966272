// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-verify-local

// What lies flat per_use is gathered for each use: no copy lives from forward to backward, or over micro-batches.

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
  // expected-error @+1 {{keeps parameter "bucket.0" whole from the forward to the backward pass: what lies flat per_use is gathered for each of them}}
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
