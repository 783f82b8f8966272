// Faults that users of other systems met. Each function is annotated by hand, partitioned, and run on all ranks
// against one device, on meshes that divide its sizes and on meshes that do not.
// DEFINE: %{mesh} =
// DEFINE: %{run} = sed 's/@mesh <.*>$/@mesh <%{mesh}>/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --nn-explicit-counts --nn-differentiate --dist-number --dist-propagate --dist-verify-global -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --dist-partition --dist-verify-local -o %t.local.mlir && \
// DEFINE:   shoal-opt %t.local.mlir --dist-verify-plan="reference=%t.global.mlir" -o /dev/null && \
// DEFINE:   shoal-opt %t.local.mlir --dist-optimize-collectives --dist-expand-collectives --dist-verify-plan="reference=%t.global.mlir" -o /dev/null
// REDEFINE: %{mesh} = ["x"=2, "y"=2]
// RUN: %{run}
// REDEFINE: %{mesh} = ["x"=2, "y"=3]
// RUN: %{run}
// REDEFINE: %{mesh} = ["x"=3, "y"=2], device_ids=[5, 0, 3, 1, 4, 2]
// RUN: %{run}
// REDEFINE: %{mesh} = ["x"=4, "y"=1]
// RUN: %{run}
// REDEFINE: %{mesh} = ["x"=1, "y"=1]
// RUN: %{run}
// REDEFINE: %{mesh} = ["y"=2, "one"=1, "x"=4]
// RUN: %{run}

dist.mesh @mesh <["x"=2, "y"=2]>

// A weight that is used twice gets the sum of both gradients.
func.func @reused_weight(
    %x: tensor<5x3xf64> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
    %w: tensor<3x3xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<5x3xf64>, tensor<3x3xf64>) -> tensor<5x3xf64>
  %1 = nn.matmul %0, %w : (tensor<5x3xf64>, tensor<3x3xf64>) -> tensor<5x3xf64>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<5x3xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// The mean over a sharded, uneven dimension is divided by the real size.
func.func @uneven_mean(
    %x: tensor<7x5xf64> {nn.input = #nn.input<"x", unbatched>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {"y"}]>},
    %w: tensor<5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<5xf64> {nn.output = "columns"}) {
  %0 = nn.mul %x, %w : (tensor<7x5xf64>, tensor<5xf64>) -> tensor<7x5xf64>
  %mean = nn.reduce mean %0 dims = [0] : tensor<7x5xf64> -> tensor<5xf64>
  %square = nn.mul %mean, %mean : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %loss = nn.reduce mean %square dims = [0] : tensor<5xf64> -> tensor<f64>
  return %loss, %mean : tensor<f64>, tensor<5xf64>
}

// Padding never wins a maximum, a minimum or a softmax, not even where all values are negative (or positive).
func.func @padded_extrema(
    %x: tensor<3x7xf64> {nn.input = #nn.input<"x", unbatched>, dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
    %w: tensor<7xf64> {nn.param = #nn.param<"w", init = uniform(1.0, 2.0)>})
    -> (tensor<f64> {nn.loss}, tensor<3xf64> {nn.output = "max"}, tensor<3xf64> {nn.output = "min"}, tensor<3x7xf64> {nn.output = "p"}) {
  %five = nn.constant dense<5.0> : tensor<f64>
  %low = nn.sub %x, %five : (tensor<3x7xf64>, tensor<f64>) -> tensor<3x7xf64>
  %negative = nn.mul %low, %w : (tensor<3x7xf64>, tensor<7xf64>) -> tensor<3x7xf64>
  %max = nn.reduce max %negative dims = [1] : tensor<3x7xf64> -> tensor<3xf64>
  %positive = nn.neg %negative : tensor<3x7xf64>
  %negmin = nn.reduce max %positive dims = [1] : tensor<3x7xf64> -> tensor<3xf64>
  %min = nn.neg %negmin : tensor<3xf64>
  %p = nn.softmax %negative dim = 1 : tensor<3x7xf64>
  %logp = nn.log_softmax %positive dim = 1 : tensor<3x7xf64>
  %0 = nn.mul %p, %logp : (tensor<3x7xf64>, tensor<3x7xf64>) -> tensor<3x7xf64>
  %1 = nn.reduce sum %0 dims = [1] : tensor<3x7xf64> -> tensor<3xf64>
  %2 = nn.add %1, %max : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %3 = nn.add %2, %min : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %loss = nn.reduce sum %3 dims = [0] : tensor<3xf64> -> tensor<f64>
  return %loss, %max, %min, %p : tensor<f64>, tensor<3xf64>, tensor<3xf64>, tensor<3x7xf64>
}

// The bias of a row-parallel layer is added once, not once per rank.
func.func @row_parallel_bias(
    %x: tensor<4x5xf64> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
    %w: tensor<5x6xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<6xf64> {nn.param = #nn.param<"b", init = ones>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<4x5xf64>, tensor<5x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<6xf64>) -> tensor<4x6xf64>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<4x6xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// A nonlinear op never sees a partial value.
func.func @nonlinear_on_partial(
    %x: tensor<4x5xf64> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"y"}, {"x"}]>},
    %w: tensor<5x6xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<f64> {nn.loss}, tensor<4x6xf64> {nn.output = "h"}) {
  %0 = nn.matmul %x, %w : (tensor<4x5xf64>, tensor<5x6xf64>) -> tensor<4x6xf64>
  %1 = nn.tanh %0 : tensor<4x6xf64>
  %2 = nn.mul %0, %1 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %loss = nn.reduce sum %2 dims = [0, 1] : tensor<4x6xf64> -> tensor<f64>
  return %loss, %1 : tensor<f64>, tensor<4x6xf64>
}

// Two axes on one dimension, more devices than elements, and axes in both orders.
func.func @two_axes(
    %x: tensor<3x5xf64> {nn.input = #nn.input<"x", unbatched>, dist.sharding = #dist.sharding<@mesh, [{"x", "y"}, {}]>},
    %w: tensor<5x9xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{}, {"y", "x"}]>})
    -> (tensor<f64> {nn.loss}, tensor<3x9xf64> {nn.output = "h"}) {
  %0 = nn.matmul %x, %w : (tensor<3x5xf64>, tensor<5x9xf64>) -> tensor<3x9xf64>
  %1 = nn.relu %0 : tensor<3x9xf64>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<3x9xf64> -> tensor<f64>
  return %loss, %1 : tensor<f64>, tensor<3x9xf64>
}

// Padding does not win a maximum of integers below all that a double tells apart.
func.func @padded_integer_maximum() -> tensor<i64> {
  %0 = nn.constant {dist.shardings = [#dist.sharding<@mesh, [{"x"}]>]} dense<-9223372036854775000> : tensor<7xi64>
  %1 = nn.reduce max %0 dims = [0] : tensor<7xi64> -> tensor<i64>
  return %1 : tensor<i64>
}
