// RUN: shoal-opt %s --dist-verify-axes --split-input-file --verify-diagnostics -o /dev/null

// Devices without a row of the batch.
// expected-remark @+1 {{8 of 16 ranks along "data" compute padding only: a batch has 8 rows; take a larger batch or fewer ranks}}
dist.mesh @mesh <["data"=16]>

func.func @small(%x: tensor<8x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %y: tensor<8x4xf32> {nn.input = "y", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.add %x, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Nor of a micro-batch, though the batch has 8.
// expected-remark @+1 {{3 of 4 ranks along "replica", "data" compute padding only: a micro-batch has 1 row; take fewer micro-batches, a larger batch or fewer ranks}}
dist.mesh @mesh <["replica"=2, "data"=2]>

func.func @parts(%x: tensor<8x1x4xf32> {nn.input = "x", nn.batch_rows = 8 : i64, dist.sharding = #dist.sharding<@mesh, [{}, {"replica", "data"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1, 2] : tensor<8x1x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Rows come in equal numbers, so that a last device may have none of rows that are more than devices.
// expected-remark @+1 {{1 of 4 ranks along "data" compute padding only: a batch has 6 rows, 2 for each rank that has some; take a larger batch or fewer ranks}}
dist.mesh @mesh <["data"=4]>

func.func @uneven(%x: tensor<6x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Padding beside rows is no news.
dist.mesh @mesh <["data"=4]>

func.func @padded(%x: tensor<7x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<7x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
