// RUN: shoal-opt %s --nn-seed -split-input-file -verify-diagnostics

// Two ops with one id would drop the same elements.
func.func @same(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<8xf32> {nn.output = "y"}) {
  // expected-note @+1 {{which draws the same numbers here}}
  %0 = nn.dropout %x rate = 0.1 id = 3 : tensor<8xf32>
  // expected-error @+1 {{id must differ from those of the model's other random ops, got: 3}}
  %1 = nn.dropout %0 rate = 0.2 id = 3 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Rows that were scattered have no number in the whole batch.
func.func @scattered(%x: tensor<6x5xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<5x2xf32> {nn.output = "y"}) {
  %0 = dist.accumulate(%x) microbatches = 3 {
  ^bb0(%xm: tensor<2x5xf32>):
    // expected-note @+1 {{lost in 'nn.reshape'}}
    %1 = nn.reshape %xm : tensor<2x5xf32> -> tensor<5x2xf32>
    // expected-error @+1 {{draws for rows of a micro-batch that cannot be followed to the whole batch}}
    %2 = nn.dropout %1 rate = 0.1 id = 0 : tensor<5x2xf32>
    dist.yield %2 : tensor<5x2xf32>
  } : (tensor<6x5xf32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}

// -----

func.func @one_row(%x: tensor<3x1xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<1x1xf32> {nn.output = "y"}) {
  %0 = dist.accumulate(%x) microbatches = 3 {
  ^bb0(%xm: tensor<1x1xf32>):
    // expected-error @+1 {{draws in a micro-batch of one row, whose dimension cannot be told from others of size 1: take fewer micro-batches than 3}}
    %1 = nn.dropout %xm rate = 0.1 id = 0 : tensor<1x1xf32>
    dist.yield %1 : tensor<1x1xf32>
  } : (tensor<3x1xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}
