// RUN: shoal-opt %s --nn-explicit-counts --allow-unregistered-dialect -split-input-file -verify-diagnostics -o /dev/null

// expected-error @+1 {{argument 1 "y": batched inputs must have one number of rows, got: 8 in "x" and 4 here}}
func.func @rows(%x: tensor<8xf32> {nn.input = "x"}, %y: tensor<4xf32> {nn.input = "y"}) { return }

// -----

// Rows of a batch of 8 are scattered over both dimensions of 6x4.
func.func @merged(%x: tensor<8x3xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  // expected-note @+1 {{lost in 'nn.reshape'}}
  %0 = nn.reshape %x : tensor<8x3xf32> -> tensor<6x4xf32>
  %1 = nn.tanh %0 : tensor<6x4xf32>
  // expected-error @+1 {{reduces operand 0, whose batch dimension cannot be followed: rows past the valid ones would count}}
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// In 3x8 merged to 24, rows are no range.
func.func @minor(%x: tensor<8x3xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.transpose %x [1, 0] : tensor<8x3xf32> -> tensor<3x8xf32>
  // expected-note @+1 {{lost in 'nn.reshape'}}
  %1 = nn.reshape %0 : tensor<3x8xf32> -> tensor<24xf32>
  // expected-error @+1 {{reduces operand 0}}
  %2 = nn.reduce sum %1 dims = [0] : tensor<24xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

func.func @slice(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{combines or moves rows of the batch, which result 0 depends on: rows past the valid ones would count}}
  %0 = nn.slice %x dim = 0 start = 7 : tensor<8xf32> -> tensor<1xf32>
  %1 = nn.reshape %0 : tensor<1xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @unknown(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<8xf32> {nn.output = "y"}) {
  // expected-error @+1 {{has no sharding rule to follow the batch dimension by; it must implement ShardingRuleOpInterface}}
  %0 = "test.op"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @region(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<8xf32> {nn.output = "y"}) {
  // expected-error @+1 {{holds a region, through which the batch dimension is not followed; give the step without it (and its micro-batches by --microbatches)}}
  %0 = "test.op"() ({
    "test.use"(%x) : (tensor<8xf32>) -> ()
  }) : () -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Who counts valid rows himself counts those of batch norm too.
func.func @counts(%x: tensor<8x4xf32> {nn.input = "x"}, %f: tensor<4xf32> {nn.param = #nn.param<"f", init = ones>},
    %valid: tensor<i64> {nn.valid_rows}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  // expected-error @+1 {{would count rows that are not real; write its masked sums where the model has 'nn.valid_rows' itself}}
  %0:3 = nn.batch_norm %x, %f, %f, %f, %f momentum = 0.1 eps = 1.0e-5 : tensor<8x4xf32>, tensor<4xf32>
  return %0#0 : tensor<8x4xf32>
}
