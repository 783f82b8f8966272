// RUN: shoal-opt %s --nn-explicit-counts | FileCheck %s
// RUN: shoal-opt %s --nn-explicit-counts --nn-explicit-counts | FileCheck %s

// A mean over the batch is the masked sum over the real rows, divided by valid * 4.
// CHECK-LABEL: func.func @mean
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x4xf32> {nn.input = "x"}, %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[M:.*]] = nn.mask %[[X]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[FOUR:.*]] = nn.constant dense<4> : tensor<i64>
// CHECK: %[[N:.*]] = nn.mul %[[V]], %[[FOUR]]
// CHECK: %[[COUNT:.*]] = nn.cast %[[N]] : tensor<i64> -> tensor<f32>
// CHECK: %[[S:.*]] = nn.reduce sum %[[M]] dims = [0, 1]
// CHECK: %[[L:.*]] = nn.div %[[S]], %[[COUNT]]
// CHECK: return %[[L]]
func.func @mean(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce mean %x dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// A mean over features needs no valid rows, and its result is still a batch.
// CHECK-LABEL: func.func @features
// CHECK-SAME: %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[C:.*]] = nn.constant dense<4.000000e+00> : tensor<f32>
// CHECK: %[[S:.*]] = nn.reduce sum %{{.*}} dims = [1]
// CHECK: %[[D:.*]] = nn.div %[[S]], %[[C]]
// CHECK: nn.mask %[[D]] dim = 0 limit = %[[V]] fill = 0xFFF0000000000000
// CHECK: nn.reduce max
func.func @features(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.metric = "m"}) {
  %0 = nn.reduce mean %x dims = [1] : tensor<8x4xf32> -> tensor<8xf32>
  %1 = nn.reduce max %0 dims = [0] : tensor<8xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// Both sides of mse_loss are masked, a sum gets no count.
// CHECK-LABEL: func.func @mse
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x4xf32> {nn.input = "x"}, %[[T:[^:]*]]: tensor<8x4xf32>{{.*}}, %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[MX:.*]] = nn.mask %[[X]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[MT:.*]] = nn.mask %[[T]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[L:.*]] = nn.mse_loss sum %[[MX]], %[[MT]]
// CHECK: return %[[L]]
func.func @mse(%x: tensor<8x4xf32> {nn.input = "x"}, %t: tensor<8x4xf32> {nn.param = #nn.param<"t", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.mse_loss sum %x, %t : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Integer targets past the real rows are ignored; the count is of targets that are not, at least 1.
// CHECK-LABEL: func.func @tokens
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x16x4xf32>{{.*}}, %[[Y:[^:]*]]: tensor<8x16xi64>{{.*}}, %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[C16:.*]] = nn.constant dense<16> : tensor<i64>
// CHECK: %[[LIMIT:.*]] = nn.mul %[[V]], %[[C16]]
// CHECK: %[[LOGITS:.*]] = nn.reshape %[[X]]
// CHECK: %[[FLAT:.*]] = nn.reshape %[[Y]]
// CHECK: %[[T:.*]] = nn.mask %[[FLAT]] dim = 0 limit = %[[LIMIT]] fill = -7.0{{.*}} : tensor<128xi64>
// CHECK: %[[IGNORED:.*]] = nn.constant dense<-7> : tensor<i64>
// CHECK: %[[REAL:.*]] = nn.compare ne %[[T]], %[[IGNORED]]
// CHECK: %[[ONES:.*]] = nn.cast %[[REAL]] : tensor<128xi1> -> tensor<128xi64>
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[ONES]]
// CHECK: %[[ONE:.*]] = nn.constant dense<1> : tensor<i64>
// CHECK: %[[N:.*]] = nn.maximum %[[SUM]], %[[ONE]]
// CHECK: %[[COUNT:.*]] = nn.cast %[[N]] : tensor<i64> -> tensor<f32>
// CHECK: %[[S:.*]], %{{.*}} = nn.cross_entropy sum %[[LOGITS]], %[[T]] ignore_index = -7
// CHECK: nn.div %[[S]], %[[COUNT]]
func.func @tokens(%x: tensor<8x16x4xf32> {nn.input = "x"}, %y: tensor<8x16xi64> {nn.input = "y"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reshape %x : tensor<8x16x4xf32> -> tensor<128x4xf32>
  %1 = nn.reshape %y : tensor<8x16xi64> -> tensor<128xi64>
  %2, %lse2 = nn.cross_entropy mean %0, %1 ignore_index = -7 : (tensor<128x4xf32>, tensor<128xi64>) -> tensor<f32>
  return %2 : tensor<f32>
}

// Probabilities past the real rows are 0; the count is of rows.
// CHECK-LABEL: func.func @probabilities
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x4xf32>{{.*}}, %[[P:[^:]*]]: tensor<8x4xf32>{{.*}}, %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[T:.*]] = nn.mask %[[P]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[COUNT:.*]] = nn.cast %[[V]] : tensor<i64> -> tensor<f32>
// CHECK: %[[S:.*]], %{{.*}} = nn.cross_entropy sum %[[X]], %[[T]]
// CHECK: nn.div %[[S]], %[[COUNT]]
func.func @probabilities(%x: tensor<8x4xf32> {nn.input = "x"}, %p: tensor<8x4xf32> {nn.input = "p"}) -> (tensor<f32> {nn.loss}) {
  %0, %lse0 = nn.cross_entropy mean %x, %p : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// The batch is followed through matmul and transposes, and masked where a product contracts it.
// CHECK-LABEL: func.func @contracted
// CHECK-SAME: %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[H:.*]] = nn.matmul
// CHECK: %[[T:.*]] = nn.transpose %[[H]] [1, 0]
// CHECK: %[[MT:.*]] = nn.mask %[[T]] dim = 1 limit = %[[V]] fill = 0.0
// CHECK: %[[MH:.*]] = nn.mask %[[H]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: nn.matmul %[[MT]], %[[MH]]
func.func @contracted(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x3xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<3x3xf32> {nn.output = "gram"}) {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %1 = nn.transpose %0 [1, 0] : tensor<8x3xf32> -> tensor<3x8xf32>
  %2 = nn.matmul %1, %0 : (tensor<3x8xf32>, tensor<8x3xf32>) -> tensor<3x3xf32>
  return %2 : tensor<3x3xf32>
}

// A mean over rows and columns that are both batches counts valid * valid.
// CHECK-LABEL: func.func @similarity
// CHECK-SAME: %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[G:.*]] = nn.matmul
// CHECK: %[[M0:.*]] = nn.mask %[[G]] dim = 0
// CHECK: %[[M1:.*]] = nn.mask %[[M0]] dim = 1
// CHECK: %[[N:.*]] = nn.mul %[[V]], %[[V]]
// CHECK: %[[COUNT:.*]] = nn.cast %[[N]]
// CHECK: nn.reduce sum %[[M1]]
func.func @similarity(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %x {transpose_b} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %1 = nn.reduce mean %0 dims = [0, 1] : tensor<8x8xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// Softmax over the batch is taken apart, so that rows which are not real have no weight; its layer is kept.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x4xf32>{{.*}}, %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK: %[[M:.*]] = nn.mask %[[X]] dim = 0 limit = %[[V]] fill = 0xFFF0000000000000 {nn.layer = "h"}
// CHECK: %[[MAX:.*]] = nn.reduce max %[[M]] dims = [0]
// CHECK: %[[D:.*]] = nn.sub %[[X]], %[[MAX]]
// CHECK: %[[E:.*]] = nn.exp %[[D]]
// CHECK: %[[ME:.*]] = nn.mask %[[E]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[S:.*]] = nn.reduce sum %[[ME]] dims = [0]
// CHECK: nn.div %[[E]], %[[S]]
// CHECK-NOT: nn.softmax
func.func @softmax(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "p"}) {
  %0 = nn.softmax %x dim = 0 {nn.layer = "h"} : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// The identity of an integer maximum is the smallest integer, -2^31.
// CHECK-LABEL: func.func @integers
// CHECK: nn.mask %{{.*}} fill = 0xC1E0000000000000 : tensor<8xi32>
func.func @integers(%x: tensor<8xi32> {nn.input = "x"}) -> (tensor<i32> {nn.output = "max"}) {
  %0 = nn.reduce max %x dims = [0] : tensor<8xi32> -> tensor<i32>
  return %0 : tensor<i32>
}

// Without batched inputs there is no argument, and counts are constants.
// CHECK-LABEL: func.func @unbatched
// CHECK-SAME: (%{{[^:]*}}: tensor<8x4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<f32> {nn.loss})
// CHECK-NOT: nn.mask
// CHECK: %[[C:.*]] = nn.constant dense<3.200000e+01> : tensor<f32>
// CHECK: %[[S:.*]] = nn.reduce sum
// CHECK: nn.div %[[S]], %[[C]]
func.func @unbatched(%x: tensor<8x4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce mean %x dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// A batch of one row is never short.
// CHECK-LABEL: func.func @one
// CHECK-SAME: nn.valid_rows
// CHECK-NOT: nn.mask
// CHECK: nn.constant dense<4.000000e+00>
func.func @one(%x: tensor<1x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce mean %x dims = [0, 1] : tensor<1x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// Outputs say which dimension holds the batch; one that has as many rows by chance does not.
// CHECK-LABEL: func.func @outputs
// CHECK-SAME: -> (tensor<8x4xf32> {nn.batch_dim = 0 : i64, nn.output = "x"}, tensor<4x8xf32> {nn.batch_dim = 1 : i64, nn.output = "t"}, tensor<8x4xf32> {nn.output = "w"})
func.func @outputs(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<8x4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<8x4xf32> {nn.output = "x"}, tensor<4x8xf32> {nn.output = "t"}, tensor<8x4xf32> {nn.output = "w"}) {
  %0 = nn.relu %x : tensor<8x4xf32>
  %1 = nn.transpose %0 [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %2 = nn.relu %w : tensor<8x4xf32>
  return %0, %1, %2 : tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
}

// Batch norm becomes masked sums over the real rows and positions, divided by their number; running variances divide by
// one less.
// CHECK-LABEL: func.func @batch_norm
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x4x3xf32>{{.*}}, %[[V:[^:]*]]: tensor<i64> {nn.valid_rows})
// CHECK-NOT: nn.batch_norm
// CHECK: %[[N:.*]] = nn.mul %[[V]], %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK: %[[COUNT:.*]] = nn.cast %[[N]] : tensor<i64> -> tensor<f32>
// CHECK: %[[MX:.*]] = nn.mask %[[X]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[S:.*]] = nn.reduce sum %[[MX]] dims = [0, 2]
// CHECK: %[[MEAN:.*]] = nn.div %[[S]], %[[COUNT]]
// CHECK: %[[D:.*]] = nn.sub %[[X]],
// CHECK: %[[SQ:.*]] = nn.mul %[[D]], %[[D]]
// CHECK: %[[MSQ:.*]] = nn.mask %[[SQ]] dim = 0 limit = %[[V]] fill = 0.0
// CHECK: %[[SS:.*]] = nn.reduce sum %[[MSQ]] dims = [0, 2]
// CHECK: nn.div %[[SS]], %[[COUNT]]
// CHECK: %[[LESS:.*]] = nn.sub %[[COUNT]],
// CHECK: %[[DF:.*]] = nn.maximum %[[LESS]],
// CHECK: nn.div %[[SS]], %[[DF]]
func.func @batch_norm(%x: tensor<8x4x3xf32> {nn.input = "x"}, %g: tensor<4xf32> {nn.param = #nn.param<"g", init = ones>},
    %m: tensor<4xf32> {nn.buffer = #nn.buffer<"m", init = 0.0>}, %v: tensor<4xf32> {nn.buffer = #nn.buffer<"v", init = 1.0>})
    -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.updates = "m"}, tensor<4xf32> {nn.updates = "v"}) {
  %0:3 = nn.batch_norm %x, %g, %g, %m, %v momentum = 0.1 eps = 1.0e-5 : tensor<8x4x3xf32>, tensor<4xf32>
  %1 = nn.reduce sum %0#0 dims = [0, 1, 2] : tensor<8x4x3xf32> -> tensor<f32>
  return %1, %0#1, %0#2 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

// Rows of a batch are independent in a norm over features, which needs no counts.
// CHECK-LABEL: func.func @norm_of_features
// CHECK: nn.layer_norm
// CHECK-NOT: nn.mask
// CHECK: return
func.func @norm_of_features(%x: tensor<8x4xf32> {nn.input = "x"}, %g: tensor<4xf32>) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %y, %mean, %rstd = nn.layer_norm %x, %g, %g eps = 1.0e-5 : tensor<8x4xf32>, tensor<4xf32>
  return %y : tensor<8x4xf32>
}

// A norm over the batch itself is divided by the number of real rows.
// CHECK-LABEL: func.func @norm_of_batch
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<i64> {nn.valid_rows}
// CHECK: %[[N:.*]] = nn.cast %[[V]] : tensor<i64> -> tensor<f32>
// CHECK: %[[SQ:.*]] = nn.mul %[[X:.*]], %[[X]]
// CHECK: %[[M:.*]] = nn.mask %[[SQ]] dim = 1 limit = %[[V]] fill = 0.0
// CHECK: %[[S:.*]] = nn.reduce sum %[[M]] dims = [1]
// CHECK: nn.div %[[S]], %[[N]]
func.func @norm_of_batch(%x: tensor<8x4xf32> {nn.input = "x"}, %g: tensor<8xf32>) -> (tensor<4x8xf32> {nn.output = "y"}) {
  %0 = nn.transpose %x [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %y, %rstd = nn.rms_norm %0, %g eps = 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>
  return %y : tensor<4x8xf32>
}

// A mean in a region that no batch reaches is a sum of its own terms, divided by their number.
// CHECK-LABEL: func.func @region
// CHECK: dist.accumulate
// CHECK: nn.reduce sum
// CHECK: nn.div
// CHECK: dist.yield
func.func @region(%x: tensor<4x8xf32> {nn.input = "x"}, %c: tensor<4x4xf32> {nn.buffer = #nn.buffer<"c", init = 1.0>})
    -> (tensor<4x8xf32> {nn.output = "y"}) {
  %k = dist.accumulate(%c) microbatches = 2 {
  ^bb0(%m: tensor<2x4xf32>):
    %mean = nn.reduce mean %m dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
    dist.yield %mean : tensor<f32>
  } : (tensor<4x4xf32>) -> tensor<f32>
  %y = nn.mul %x, %k : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
