// RUN: shoal-opt %s --nn-differentiate --canonicalize --cse | FileCheck %s

// What each op's gradient is made of; that the numbers are right is tested against finite differences.

// A broadcast operand's cotangent is summed back to its shape.
// CHECK-LABEL: func.func @add
// CHECK: %[[DB:.*]] = nn.reduce sum %{{.*}} dims = [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
// CHECK: nn.reshape %[[DB]] : tensor<3xf32> -> tensor<3x1xf32>
func.func @add(%a: tensor<2x3x4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<3x1xf32> {nn.param = #nn.param<"b", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.add %a, %b : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %1 = nn.mul %0, %0 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = nn.reduce sum %1 dims = [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// d(a/b): the quotient is used again.
// CHECK-LABEL: func.func @div(
// CHECK: %[[Q:.*]] = nn.div %[[A:.*]], %[[B:.*]] :
// CHECK: nn.reduce sum
// CHECK: %[[CT:.*]] = nn.mul
// CHECK: %[[DA:.*]] = nn.div %[[CT]], %[[B]]
// CHECK: %[[CTQ:.*]] = nn.mul %[[CT]], %[[Q]]
// CHECK: %[[DIV:.*]] = nn.div %[[CTQ]], %[[B]]
// CHECK: %[[DB:.*]] = nn.neg %[[DIV]]
// CHECK: return %{{.*}}, %[[DA]], %[[DB]]
func.func @div(%a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>}, %c: tensor<4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.div %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.mul %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.reduce sum %1 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// The larger one gets the cotangent, equal ones half of it.
// CHECK-LABEL: func.func @maximum(
// CHECK: %[[Y:.*]] = nn.maximum %[[A:.*]], %[[B:.*]] :
// CHECK: %[[TIE:.*]] = nn.compare eq %[[A]], %[[B]]
// CHECK: %[[HALF:.*]] = nn.mul
// CHECK: %[[ELSE:.*]] = nn.select %[[TIE]], %[[HALF]]
// CHECK: %[[WINS:.*]] = nn.compare gt %[[A]], %[[B]]
// CHECK: nn.select %[[WINS]], %{{.*}}, %[[ELSE]]
func.func @maximum(%a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.maximum %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// Functions of one value ask their results where they can: only log needs its input.
// CHECK-LABEL: func.func @chain(
// CHECK: %[[RELU:.*]] = nn.relu
// CHECK: %[[TANH:.*]] = nn.tanh
// CHECK: %[[SQRT:.*]] = nn.sqrt
// CHECK: %[[RSQRT:.*]] = nn.rsqrt
// CHECK: nn.log
// CHECK: %[[EXP:.*]] = nn.exp
// CHECK: nn.reduce sum
// CHECK: %[[C6:.*]] = nn.neg %{{.*}} : tensor<4xf32>
// CHECK: %[[C5:.*]] = nn.mul %[[C6]], %[[EXP]]
// CHECK: %[[C4:.*]] = nn.div %[[C5]], %[[RSQRT]]
// CHECK: %[[HALF:.*]] = nn.mul %[[C4]], %{{.*}} : (tensor<4xf32>, tensor<f32>)
// CHECK: %[[SQUARE:.*]] = nn.mul %[[RSQRT]], %[[RSQRT]]
// CHECK: %[[CUBE:.*]] = nn.mul %[[RSQRT]], %[[SQUARE]]
// CHECK: %[[C3:.*]] = nn.mul %[[HALF]], %[[CUBE]]
// CHECK: %[[HALF3:.*]] = nn.mul %[[C3]]
// CHECK: %[[C2:.*]] = nn.div %[[HALF3]], %[[SQRT]]
// CHECK: %[[T2:.*]] = nn.mul %[[TANH]], %[[TANH]]
// CHECK: %[[D:.*]] = nn.sub %{{.*}}, %[[T2]]
// CHECK: %[[C1:.*]] = nn.mul %[[C2]], %[[D]]
// CHECK: %[[POSITIVE:.*]] = nn.compare gt %[[RELU]]
// CHECK: nn.select %[[POSITIVE]], %[[C1]]
func.func @chain(%a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.relu %a : tensor<4xf32>
  %1 = nn.tanh %0 : tensor<4xf32>
  %2 = nn.sqrt %1 : tensor<4xf32>
  %3 = nn.rsqrt %2 : tensor<4xf32>
  %4 = nn.log %3 : tensor<4xf32>
  %5 = nn.exp %4 : tensor<4xf32>
  %6 = nn.neg %5 : tensor<4xf32>
  %7 = nn.reduce sum %6 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %7 : tensor<f32>
}

// The maxima of a row share the cotangent.
// CHECK-LABEL: func.func @max(
// CHECK: %[[MAX:.*]] = nn.reduce max %[[A:.*]] dims = [1]
// CHECK: %[[CT:.*]] = nn.reshape %{{.*}} : tensor<4xf32> -> tensor<4x1xf32>
// CHECK: %[[KEPT:.*]] = nn.reshape %[[MAX]]
// CHECK: %[[IS:.*]] = nn.compare eq %[[A]], %[[KEPT]]
// CHECK: %[[ONES:.*]] = nn.cast %[[IS]]
// CHECK: %[[TIES:.*]] = nn.reduce sum %[[ONES]] dims = [1] {keep_dims}
// CHECK: %[[SHARE:.*]] = nn.div %[[CT]], %[[TIES]]
// CHECK: nn.select %[[IS]], %[[SHARE]]
func.func @max(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %c: tensor<4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce max %a dims = [1] : tensor<4x3xf32> -> tensor<4xf32>
  %1 = nn.mul %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.reduce sum %1 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// Softmax and its logarithm.
// CHECK-LABEL: func.func @softmax(
// CHECK: %[[P:.*]] = nn.softmax %{{.*}} dim = 1
// CHECK: %[[LOG:.*]] = nn.log_softmax %[[P]] dim = 0
// CHECK: nn.reduce sum %{{.*}} dims = [0, 1]
// CHECK: %[[CT:.*]] = nn.mul
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[CT]] dims = [0] {keep_dims}
// CHECK: %[[E:.*]] = nn.exp %[[LOG]]
// CHECK: %[[ES:.*]] = nn.mul %[[E]], %[[SUM]]
// CHECK: %[[DP:.*]] = nn.sub %[[CT]], %[[ES]]
// CHECK: %[[INNER:.*]] = nn.mul %[[DP]], %[[P]]
// CHECK: %[[DOT:.*]] = nn.reduce sum %[[INNER]] dims = [1] {keep_dims}
// CHECK: %[[D:.*]] = nn.sub %[[DP]], %[[DOT]]
// CHECK: nn.mul %[[P]], %[[D]]
func.func @softmax(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %c: tensor<4x3xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.softmax %a dim = 1 : tensor<4x3xf32>
  %1 = nn.log_softmax %0 dim = 0 : tensor<4x3xf32>
  %2 = nn.mul %1, %c : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = nn.reduce sum %2 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %3 : tensor<f32>
}

// Ops that move elements move them back, last first.
// CHECK-LABEL: func.func @shape(
// CHECK: nn.broadcast
// CHECK: %[[R:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<2x27xf64> -> tensor<27xf64>
// CHECK: %[[S:.*]] = nn.reshape %[[R]] : tensor<27xf64> -> tensor<3x9xf64>
// CHECK: %[[C:.*]] = nn.cast %[[S]] : tensor<3x9xf64> -> tensor<3x9xf32>
// CHECK: %[[SEL:.*]] = nn.select %{{.*}}, %[[C]], %{{.*}}
// CHECK: %[[M:.*]] = nn.mask %[[SEL]] dim = 0 limit = %{{.*}} fill = 0.0
// CHECK: %[[SLICE:.*]] = nn.slice %[[M]] dim = 1 start = 2
// CHECK: %[[T:.*]] = nn.transpose %[[SLICE]] [1, 0]
// CHECK: nn.pad %[[T]] dim = 0 low = 1
func.func @shape(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %c: tensor<3x9xf32>, %n: tensor<i64>, %k: tensor<3x9xi1>) -> (tensor<f64> {nn.loss}) {
  %0 = nn.slice %a dim = 0 start = 1 : tensor<4x3xf32> -> tensor<3x3xf32>
  %1 = nn.transpose %0 [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
  %2 = nn.pad %1 dim = 1 low = 2 : tensor<3x3xf32> -> tensor<3x9xf32>
  %3 = nn.mask %2 dim = 0 limit = %n fill = 0xFFF0000000000000 : tensor<3x9xf32>
  %4 = nn.select %k, %3, %c : (tensor<3x9xi1>, tensor<3x9xf32>, tensor<3x9xf32>) -> tensor<3x9xf32>
  %5 = nn.cast %4 : tensor<3x9xf32> -> tensor<3x9xf64>
  %6 = nn.reshape %5 : tensor<3x9xf64> -> tensor<27xf64>
  %7 = nn.broadcast %6 : tensor<27xf64> -> tensor<2x27xf64>
  %8 = nn.reduce sum %7 dims = [0, 1] : tensor<2x27xf64> -> tensor<f64>
  return %8 : tensor<f64>
}

// Losses: the gradient of cross_entropy is one op that reads the log-sum-exp.
// CHECK-LABEL: func.func @losses(
// CHECK: %{{.*}}, %[[LSE:.*]] = nn.cross_entropy sum %{{.*}} ignore_index = -1
// CHECK: %{{.*}}, %[[SOFTLSE:.*]] = nn.cross_entropy sum
// CHECK: nn.cross_entropy_grad %[[A:.*]], %[[P:.*]], %[[SOFTLSE]], %{{.*}} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>)
// CHECK: nn.cross_entropy_grad %[[A]], %{{.*}}, %[[LSE]], %{{.*}} ignore_index = -1
// CHECK: %[[D:.*]] = nn.sub %[[P]], %[[A]]
// CHECK: %[[G:.*]] = nn.mul %[[D]]
// CHECK: nn.neg %[[G]]
func.func @losses(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %y: tensor<4xi64>, %p: tensor<4x3xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.mse_loss sum %p, %a : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<f32>
  %1, %lse1 = nn.cross_entropy sum %a, %y ignore_index = -1 : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<f32>
  %2, %lse2 = nn.cross_entropy sum %a, %p : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<f32>
  %3 = nn.add %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %4 = nn.add %3, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %4 : tensor<f32>
}

// Transposes of a product become transposes of its gradients, no op.
// CHECK-LABEL: func.func @matmul_transposed(
// CHECK: nn.matmul %[[A:.*]], %[[B:.*]] {transpose_a, transpose_b}
// CHECK: %[[CT:.*]] = nn.mul %{{.*}} : (tensor<2x4xf32>, tensor<f32>)
// CHECK: nn.matmul %[[B]], %[[CT]] {transpose_a, transpose_b}
// CHECK: nn.matmul %[[CT]], %[[A]] {transpose_a, transpose_b}
func.func @matmul_transposed(%a: tensor<3x2xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4x3xf32> {nn.param = #nn.param<"b", init = zeros>}, %c: tensor<2x4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %a, %b {transpose_a, transpose_b} : (tensor<3x2xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %1 = nn.mse_loss sum %0, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// The gradients of a product over several dimensions are such products, and never a transpose.
// CHECK-LABEL: func.func @tensordot(
// CHECK: nn.tensordot %[[A:.*]], %[[B:.*]] axes = 2 {transpose_a, transpose_b}
// CHECK: %[[CT:.*]] = nn.mul %{{.*}} : (tensor<2x5x6xf32>, tensor<f32>)
// CHECK: nn.tensordot %[[B]], %[[CT]] axes = 2 {transpose_a, transpose_b} : {{.*}} -> tensor<3x4x2xf32>
// CHECK: nn.tensordot %[[CT]], %[[A]] axes = 1 {transpose_a, transpose_b} : {{.*}} -> tensor<5x6x3x4xf32>
// CHECK-NOT: nn.transpose
func.func @tensordot(%a: tensor<3x4x2xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<5x6x3x4xf32> {nn.param = #nn.param<"b", init = zeros>}, %c: tensor<2x5x6xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.tensordot %a, %b axes = 2 {transpose_a, transpose_b} : (tensor<3x4x2xf32>, tensor<5x6x3x4xf32>) -> tensor<2x5x6xf32>
  %1 = nn.mse_loss sum %0, %c : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Numbers get no gradient, the rows that they name that of where they went.
// CHECK-LABEL: func.func @embedding(
// CHECK-SAME: %[[T:.*]]: tensor<7x2xf32> {{{.*}}}, %[[I:.*]]: tensor<3xi64>
// CHECK: nn.embedding %[[T]], %[[I]]
// CHECK: %[[CT:.*]] = nn.mul %{{.*}} : (tensor<3x2xf32>, tensor<f32>)
// CHECK: nn.embedding_grad %[[I]], %[[CT]] : (tensor<3xi64>, tensor<3x2xf32>) -> tensor<7x2xf32>
func.func @embedding(%t: tensor<7x2xf32> {nn.param = #nn.param<"t", init = zeros>}, %i: tensor<3xi64> {nn.input = "i"}, %c: tensor<3x2xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.embedding %t, %i : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %1 = nn.mse_loss sum %0, %c : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// A right side that serves every batch gets the sum over batches.
// CHECK-LABEL: func.func @matmul_shared(
// CHECK: nn.matmul %[[A:.*]], %[[B:.*]] {transpose_a}
// CHECK: %[[CT:.*]] = nn.mul %{{.*}} : (tensor<5x2x4xf32>, tensor<f32>)
// CHECK: %[[T:.*]] = nn.matmul %[[CT]], %[[B]] {transpose_b}
// CHECK: nn.transpose %[[T]] [0, 2, 1]
// CHECK: nn.matmul %[[A]], %[[CT]] {sum_batch}
func.func @matmul_shared(%a: tensor<5x3x2xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<3x4xf32> {nn.param = #nn.param<"b", init = zeros>}, %c: tensor<5x2x4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %a, %b {transpose_a} : (tensor<5x3x2xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>
  %1 = nn.mse_loss sum %0, %c : (tensor<5x2x4xf32>, tensor<5x2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Every batch of a sum has the sum's cotangent.
// CHECK-LABEL: func.func @matmul_sum_batch(
// CHECK: nn.matmul %[[A:.*]], %[[B:.*]] {sum_batch}
// CHECK: %[[CT:.*]] = nn.broadcast %{{.*}} : tensor<2x4xf32> -> tensor<5x2x4xf32>
// CHECK: nn.matmul %[[CT]], %[[B]] {transpose_b}
// CHECK: nn.matmul %[[A]], %[[CT]] {transpose_a}
func.func @matmul_sum_batch(%a: tensor<5x2x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<5x3x4xf32> {nn.param = #nn.param<"b", init = zeros>}, %c: tensor<2x4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %a, %b {sum_batch} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<2x4xf32>
  %1 = nn.mse_loss sum %0, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// The gradient reads what the forward pass read and made, masks included.
// CHECK-LABEL: func.func @attention(
// CHECK: %[[O:.*]], %[[LSE:.*]] = nn.attention %[[Q:.*]], %[[K:.*]], %[[K]] segments = %[[S:.*]], %[[S]] causal window = 3 scale = 5.000000e-01
// CHECK: %{{.*}}, %[[DK:.*]], %[[DV:.*]] = nn.attention_grad %{{.*}}, %[[Q]], %[[K]], %[[K]], %[[O]], %[[LSE]] segments = %[[S]], %[[S]] causal window = 3 scale = 5.000000e-01
// CHECK: nn.add %[[DK]], %[[DV]]
func.func @attention(%q: tensor<2x6x1x1x4xf32> {nn.param = #nn.param<"q", init = zeros>}, %k: tensor<2x6x1x4xf32> {nn.param = #nn.param<"k", init = zeros>},
    %s: tensor<2x6xi64>, %c: tensor<2x6x1x1x4xf32>) -> (tensor<f32> {nn.loss}) {
  %o, %lse = nn.attention %q, %k, %k segments = %s, %s causal window = 3 scale = 0.5 : (tensor<2x6x1x1x4xf32>, tensor<2x6x1x4xf32>, tensor<2x6x1x4xf32>, tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6x1x1x4xf32>
  %1 = nn.mse_loss sum %o, %c : (tensor<2x6x1x1x4xf32>, tensor<2x6x1x1x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Positions are passed on; the cotangent has the type of a wide result, and what is differentiated its own.
// CHECK-LABEL: func.func @attention_positions(
// CHECK: nn.attention %{{.*}} positions = %[[QP:.*]], %[[KP:.*]] causal scale
// CHECK: nn.attention_grad %{{.*}} positions = %[[QP]], %[[KP]] causal scale = {{.*}} : (tensor<2x3x1x1x4xf32>, tensor<2x3x1x1x4xbf16>,
// CHECK-SAME: -> (tensor<2x3x1x1x4xbf16>, tensor<2x6x1x4xbf16>, tensor<2x6x1x4xbf16>)
func.func @attention_positions(%q: tensor<2x3x1x1x4xf32> {nn.param = #nn.param<"q", init = zeros>}, %k: tensor<2x6x1x4xbf16>,
    %qp: tensor<3xi64>, %kp: tensor<6xi64>, %c: tensor<2x3x1x1x4xf32>) -> (tensor<f32> {nn.loss}) {
  %0 = nn.cast %q : tensor<2x3x1x1x4xf32> -> tensor<2x3x1x1x4xbf16>
  %o, %lse = nn.attention %0, %k, %k positions = %qp, %kp causal scale = 0.5 : (tensor<2x3x1x1x4xbf16>, tensor<2x6x1x4xbf16>, tensor<2x6x1x4xbf16>, tensor<3xi64>, tensor<6xi64>) -> tensor<2x3x1x1x4xf32>
  %1 = nn.mse_loss sum %o, %c : (tensor<2x3x1x1x4xf32>, tensor<2x3x1x1x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Dropout drops the same elements of the cotangent.
// CHECK-LABEL: func.func @dropout
// CHECK-SAME: %[[SEED:[^:]*]]: tensor<i64> {nn.seed}, %[[STEP:[^:]*]]: tensor<i64> {nn.step})
// CHECK: %[[CT:.*]] = nn.constant dense<1.000000e+00> : tensor<4x3xf32>
// CHECK: %[[G:.*]] = nn.dropout %[[CT]] rate = 2.500000e-01 id = 5 seed = %[[SEED]] step = %[[STEP]] : tensor<4x3xf32>
// CHECK: return %{{.*}}, %[[G]]
func.func @dropout(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %s: tensor<i64> {nn.seed}, %t: tensor<i64> {nn.step})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.dropout %a rate = 0.25 id = 5 seed = %s step = %t : tensor<4x3xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// The cotangent's rows are at the positions of the rows.
// CHECK-LABEL: func.func @dropout_positions
// CHECK-SAME: %[[P:[^:]*]]: tensor<3xi64>
// CHECK: nn.dropout %{{.*}} rate = 2.500000e-01 id = 5
// CHECK: %[[G:.*]] = nn.dropout %{{.*}} rate = 2.500000e-01 id = 5 seed = %{{.*}} step = %{{.*}} positions = %[[P]] dim = 1 : tensor<4x3xf32>, tensor<3xi64>
// CHECK: return %{{.*}}, %[[G]]
func.func @dropout_positions(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %s: tensor<i64> {nn.seed}, %t: tensor<i64> {nn.step},
    %p: tensor<3xi64> {nn.input = #nn.input<"p", unbatched>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.dropout %a rate = 0.25 id = 5 seed = %s step = %t positions = %p dim = 1 : tensor<4x3xf32>, tensor<3xi64>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// A norm's gradient reads the statistics of its rows; sums along rows for the input, across rows for the parameters.
// CHECK-LABEL: func.func @layer_norm(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x3x4xf32>
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[RSTD:.*]] = nn.layer_norm %[[X]]
// CHECK-DAG: %[[R:.*]] = nn.reshape %[[RSTD]] : tensor<2x3xf32> -> tensor<2x3x1xf32>
// CHECK-DAG: %[[M:.*]] = nn.reshape %[[MEAN]] : tensor<2x3xf32> -> tensor<2x3x1xf32>
// CHECK: %[[C:.*]] = nn.sub %[[X]], %[[M]]
// CHECK: %[[XHAT:.*]] = nn.mul %[[C]], %[[R]]
// CHECK: %[[P:.*]] = nn.mul %[[G:.*]], %[[XHAT]]
// CHECK: nn.reduce sum %[[P]] dims = [2] {keep_dims}
// CHECK: nn.reduce sum %[[G]] dims = [2] {keep_dims}
// CHECK: nn.reduce sum %{{.*}} dims = [0, 1] : tensor<2x3x4xf32> -> tensor<4xf32>
// CHECK: nn.reduce sum %{{.*}} dims = [0, 1] : tensor<2x3x4xf32> -> tensor<4xf32>
func.func @layer_norm(%x: tensor<2x3x4xf32> {nn.param = #nn.param<"x", init = zeros>}, %g: tensor<4xf32> {nn.param = #nn.param<"g", init = ones>},
    %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %y, %mean, %rstd = nn.layer_norm %x, %g, %b eps = 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32>
  %1 = nn.mul %y, %y : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = nn.reduce sum %1 dims = [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// bf16 is computed in f32, but sums over rows are taken in the type of the parameters: behind a cast they could not stay
// partial over devices.
// CHECK-LABEL: func.func @rms_norm_bf16(
// CHECK: nn.rms_norm
// CHECK: %[[XHAT:.*]] = nn.mul %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
// CHECK: %[[P:.*]] = nn.mul %[[XHAT]], %{{.*}}
// CHECK: %[[H:.*]] = nn.cast %[[P]] : tensor<3x4xf32> -> tensor<3x4xbf16>
// CHECK: %[[DG:.*]] = nn.reduce sum %[[H]] dims = [0] : tensor<3x4xbf16> -> tensor<4xbf16>
// CHECK: return %{{.*}}, %[[DG]]
func.func @rms_norm_bf16(%x: tensor<3x4xbf16>, %g: tensor<4xbf16> {nn.param = #nn.param<"g", init = ones>}) -> (tensor<bf16> {nn.loss}) {
  %y, %rstd = nn.rms_norm %x, %g eps = 1.0e-5 : tensor<3x4xbf16>, tensor<4xbf16>
  %2 = nn.reduce sum %y dims = [0, 1] : tensor<3x4xbf16> -> tensor<bf16>
  return %2 : tensor<bf16>
}

// A chain of factors is computed in f32 for bf16, and rounded once at its end.
// CHECK-LABEL: func.func @gelu_bf16(
// CHECK: %[[Y:.*]] = nn.gelu tanh %[[X:.*]] : tensor<4xbf16>
// CHECK: nn.cast %[[X]] : tensor<4xbf16> -> tensor<4xf32>
// CHECK-NOT: bf16
// CHECK: %[[DX:.*]] = nn.cast %{{.*}} : tensor<4xf32> -> tensor<4xbf16>
// CHECK-NEXT: return %{{.*}}, %[[DX]]
func.func @gelu_bf16(%x: tensor<4xbf16> {nn.param = #nn.param<"x", init = ones>}) -> (tensor<bf16> {nn.loss}) {
  %y = nn.gelu tanh %x : tensor<4xbf16>
  %2 = nn.reduce sum %y dims = [0] : tensor<4xbf16> -> tensor<bf16>
  return %2 : tensor<bf16>
}

// Forward and backward turn by one table.
// CHECK-LABEL: func.func @rope(
// CHECK: nn.rope_table
// CHECK-NOT: nn.rope_table
// CHECK: nn.rotate %{{.*}} : tensor<2x3x2x2x3xf32>, tensor<3x3xf32>
// CHECK-NOT: nn.rope_table
// CHECK: nn.rotate %{{.*}} {inverse} : tensor<2x3x2x2x3xf32>, tensor<3x3xf32>
func.func @rope(%x: tensor<2x3x2x6xf32> {nn.param = #nn.param<"x", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %p = nn.iota dim = 0 : tensor<3xi64>
  %0 = nn.rope %x, %p base = 10000.0 : tensor<2x3x2x6xf32>, tensor<3xi64>
  %1 = nn.mul %0, %0 : (tensor<2x3x2x6xf32>, tensor<2x3x2x6xf32>) -> tensor<2x3x2x6xf32>
  %2 = nn.reduce sum %1 dims = [0, 1, 2, 3] : tensor<2x3x2x6xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// An order's gradient is the other order. That of a shard's rows first puts them where they are of the whole.
// CHECK-LABEL: func.func @zigzag
// CHECK-SAME: %[[O:[^:]*]]: tensor<i64>
// CHECK-DAG: %[[CT:.*]] = nn.constant dense<1.000000e+00> : tensor<3x4xf32>
// CHECK-DAG: %[[ZEROS:.*]] = nn.constant dense<0.000000e+00> : tensor<10x4xf32>
// CHECK: %[[PLACED:.*]] = nn.dynamic_update_slice %[[ZEROS]], %[[CT]] dim = 0 start = %[[O]]
// CHECK: %[[WHOLE:.*]] = nn.slice %[[PLACED]] dim = 0 start = 0 : tensor<10x4xf32> -> tensor<7x4xf32>
// CHECK: %[[Z:.*]] = nn.zigzag %[[WHOLE]] dim = 0 ranks = 3 : tensor<7x4xf32>
// CHECK: %[[G:.*]] = nn.zigzag %[[Z]] dim = 0 ranks = 2 inverse : tensor<7x4xf32>
// CHECK: return %{{.*}}, %[[G]]
func.func @zigzag(%a: tensor<7x4xf32> {nn.param = #nn.param<"a", init = zeros>}, %o: tensor<i64> {nn.step}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.zigzag %a dim = 0 ranks = 2 : tensor<7x4xf32>
  %1 = nn.zigzag %0 dim = 0 ranks = 3 inverse offset = %o : tensor<7x4xf32> -> tensor<3x4xf32>
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}
