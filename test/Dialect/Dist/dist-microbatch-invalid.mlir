// RUN: shoal-opt %s --split-input-file --dist-microbatch=count=4 -verify-diagnostics

// Statistics of the whole batch, as batch_norm subtracts them, are known when all micro-batches have run.
func.func @statistics(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %h = nn.mul %x, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // expected-note @+1 {{the sum is made here}}
  %sum = nn.reduce sum %h dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
  // expected-error @+1 {{'nn.sub' op needs a sum over all rows of the batch beside its rows, as the statistics of batch_norm are: no micro-batch knows it before all have run; normalise within a row (layer_norm) or leave --microbatches out}}
  %d = nn.sub %h, %sum : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %d dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Fewer rows than micro-batches: both numbers are named.
// expected-error @+1 {{has batches of 3 rows, too few for 4 micro-batches}}
func.func @few(%x: tensor<3x4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "s"}) {
  %s = nn.reduce sum %x dims = [0] : tensor<3x4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Only sums are added up.
func.func @maximum(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "m"}) {
  // expected-error @+1 {{combines rows of the batch otherwise than by a sum, and micro-batches are added; reduce by a sum or leave --microbatches out}}
  %m = nn.reduce max %x dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
  return %m : tensor<4xf32>
}

// -----

// A slice of the batch lies in some micro-batches.
func.func @moves(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "s"}) {
  // expected-error @+1 {{combines or moves rows of the batch, which micro-batches do not have together; keep each row's computation to itself or leave --microbatches out}}
  %half = nn.slice %x dim = 0 start = 4 : tensor<8x4xf32> -> tensor<4x4xf32>
  %s = nn.reduce sum %half dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// No region has all rows of a result.
// expected-error @+1 {{result 0 "y": has rows of the batch, which no micro-batch has all of; return a sum of them or leave --microbatches out}}
func.func @rows(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %y = nn.relu %x : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// A parameter with a dimension of the batch belongs to no micro-batch.
func.func @parameter(%x: tensor<8x4xf32> {nn.input = "x"},
    // expected-error @+1 {{a dimension of argument "w" is that of the batch, which only batched inputs may have to be split into micro-batches; make it an nn.input or leave --microbatches out}}
    %w: tensor<8x4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4xf32> {nn.output = "s"}) {
  %y = nn.mul %x, %w : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = nn.reduce sum %y dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Micro-batches of micro-batches are none.
// expected-error @+1 {{argument 0 "x": is split into micro-batches already}}
func.func @again(%x: tensor<2x4x4xf32> {nn.input = "x", nn.batch_rows = 8 : i64}) -> (tensor<4xf32> {nn.output = "s"}) {
  %s = nn.reduce sum %x dims = [0, 1] : tensor<2x4x4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// A region holds ops whose rows are not followed.
func.func @region(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "s"}) {
  // expected-error @+1 {{holds a region, through which the rows of the batch cannot be followed into micro-batches; run dist-microbatch before ops are put into regions}}
  %s = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %0 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// expected-error @+1 {{a micro-batch of 8 rows in 3 has 3, got: 'tensor<3x4x4xf32>'}}
func.func @size(%x: tensor<3x4x4xf32> {nn.input = "x", nn.batch_rows = 8 : i64}) -> (tensor<4xf32> {nn.output = "s"}) {
  %s = nn.reduce sum %x dims = [0, 1] : tensor<3x4x4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// expected-error @+1 {{'nn.batch_rows' is the i64 number of rows of a batched input [micro-batch, row, ...], got: 8 : i64 of 'tensor<4xf32>'}}
func.func @noInput(%x: tensor<4xf32> {nn.input = "x", nn.batch_rows = 8 : i64}) -> (tensor<4xf32> {nn.output = "s"}) {
  return %x : tensor<4xf32>
}
