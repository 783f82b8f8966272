// RUN: shoal-opt %s -split-input-file -verify-diagnostics

// What a bucket must be for its members to be found in it.

// expected-error @+1 {{argument 0 "b": a bucket must be a 1-D tensor of static shape, got: 'tensor<2x2xf32>'}}
func.func @matrix(%p: tensor<2x2xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32>>]>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 "x": a bucket is a parameter, a state or a gradient: it needs 'nn.param', 'nn.state' or 'nn.grad'}}
func.func @input(%p: tensor<4xf32> {nn.input = "x", dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32>>]>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 "b": a bucket of parameters has a member that is none: "w"}}
func.func @role(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[<"w", tensor<4xf32>>]>}) {
  return
}

// -----

// expected-error @+1 {{a member of a bucket must be #nn.param, #nn.buffer, #nn.state or the name of a gradient, got: 3}}
func.func @kind(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[<3, tensor<4xf32>>]>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 "b": a bucket has two members "w"}}
func.func @twice(%p: tensor<8xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32>>, <#nn.param<"w", init = zeros>, tensor<4xf32>>]>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 "b": members must have the element type of the bucket, 'f32', got: 'tensor<4xf64>' of "w"}}
func.func @element(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf64>>]>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 "b": a bucket of 5 elements over 1 devices has fewer elements of padding than devices, got: -1}}
func.func @small(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<5xf32>>]>}) {
  return
}

// -----

dist.mesh @mesh <["data"=2, "tensor"=4]>
// expected-error @+1 {{argument 0 "b": a bucket of 4 elements over 2 devices has fewer elements of padding than devices, got: 2}}
func.func @padding(%p: tensor<3xf32> {nn.param = #nn.param<"b", init = zeros>, dist.global = #dist.global<0, tensor<6xf32>, <@mesh, [{"data"}]>>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32>>]>}) {
  return
}

// -----

dist.mesh @mesh <["data"=2]>
// expected-error @+1 {{argument 0 "b": a bucket must divide over its 2 devices, got: 'tensor<5xf32>'}}
func.func @uneven(%p: tensor<5xf32> {nn.param = #nn.param<"b", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"data"}]>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<5xf32>>]>}) {
  return
}

// -----

dist.mesh @mesh <["tensor"=2]>
// expected-error @+1 {{argument 0 "b": "dist.bucket" is a piece of type 'tensor<3xf32>' of 'tensor<6xf32>', its value has 'tensor<4xf32>'}}
func.func @piece(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32> of <0, tensor<6xf32>, <@mesh, [{"tensor"}]>>>]>}) {
  return
}

// -----

// expected-error @+1 {{the range of a member must hold elements of 'tensor<4xf32>', got: [2:5]}}
func.func @range(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[<"w", tensor<4xf32>[2:5]>]>}) {
  return
}

// -----

// expected-error @+1 {{a bucket must have at least 1 member}}
func.func @none(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[]>}) {
  return
}

// -----

// expected-error @+1 {{the range of a member must hold elements of 'tensor<8xf32>', got: [-2:3]}}
func.func @before(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[<"w", tensor<8xf32>[-2:3]>]>}) {
  return
}

// -----

// expected-error @+1 {{id must be from 0 to 2^63 - 1, got: -1}}
func.func @id(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[<"w", tensor<4xf32> of <-1, tensor<4xf32>, <@mesh, [{}]>>>]>}) {
  return
}

// -----

// expected-error @+1 {{the range of a member must hold elements of 'tensor<4xf32>', got: [2:2]}}
func.func @empty(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.bucket = #dist.bucket<[<"w", tensor<4xf32>[2:2]>]>}) {
  return
}

// -----

// Of a range the bucket holds no more than that.
// expected-error @+1 {{argument 0 "b": a bucket of 3 elements over 1 devices has fewer elements of padding than devices, got: 1}}
func.func @part(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32>[1:4]>]>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 "b": the shape in files of "w" must have as many elements as 'tensor<4xf32>', got: [3]}}
func.func @file(%p: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>,
    dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros, file = [3]>, tensor<4xf32>>]>}) {
  return
}

// -----

dist.mesh @mesh <["data"=2]>
// Results too.
// expected-error @+1 {{result 0 "b": a bucket of gradients has a member that is none: #nn.param<"w", init = zeros>}}
func.func @gradient() -> (tensor<4xf32> {nn.grad = "b", dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<4xf32>>]>}) {
  %0 = nn.constant dense<0.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
