// A training step of real passes on several ranks is what one device does; with one reduction removed the first op that
// sees the wrong value is named.
// DEFINE: %{global} = shoal-opt %s --nn-explicit-counts --nn-differentiate \
// DEFINE:   --nn-optimize="optimizer=adamw weight-decay=0.1 clip-grad-norm=0.5" --dist-number --dist-data-parallel --dist-close-arguments --dist-propagate
// RUN: %{global} -o %t.global.mlir
// RUN: shoal-opt %t.global.mlir --dist-pack --dist-partition -o %t.local.mlir
// RUN: shoal-opt %t.local.mlir --dist-verify-plan="reference=%t.global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: remark: the plan agrees with one device: {{[1-9][0-9]+}} values and {{[0-9]+}} results compared in each of 3 steps

// RUN: sed -E 's/dist.all_reduce .* sum (%%[0-9]+) \{reason = #dist.reason<"gradients.*\} : (tensor<.*>)$/nn.reshape \1 : \2 -> \2/' %t.local.mlir > %t.gradient.mlir
// RUN: not shoal-opt %t.gradient.mlir --dist-verify-plan="reference=%t.global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: error: the plan differs from one device first at nn.{{(reduce|matmul)}} (dist.id {{[0-9]+}}, here dist.unpack): element [{{.*}}] on rank 0 is

// RUN: sed -E 's/dist.all_reduce .* sum (%%[0-9]+) \{reason = #dist.reason<"loss.*\} : (tensor<.*>)$/nn.reshape \1 : \2 -> \2/' %t.local.mlir > %t.loss.mlir
// RUN: not shoal-opt %t.loss.mlir --dist-verify-plan="reference=%t.global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOSS
// LOSS: error: the plan differs from one device first at result 0 (loss) of the function: the value on rank 0 is

dist.mesh @mesh <["data"=3], device_ids = [2, 0, 1]>
func.func @mlp(
    %x: tensor<7x6xf32> {nn.input = "x"}, %y: tensor<7xi64> {nn.input = "y"},
    %w1: tensor<6x5xf32> {nn.param = #nn.param<"w1", init = kaiming_uniform>}, %b1: tensor<5xf32> {nn.param = #nn.param<"b1", init = zeros>},
    %w2: tensor<5x4xf32> {nn.param = #nn.param<"w2", init = kaiming_uniform>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<7x6xf32>, tensor<6x5xf32>) -> tensor<7x5xf32>
  %1 = nn.add %0, %b1 : (tensor<7x5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  %2 = nn.relu %1 : tensor<7x5xf32>
  %3 = nn.matmul %2, %w2 : (tensor<7x5xf32>, tensor<5x4xf32>) -> tensor<7x4xf32>
  %loss, %lse = nn.cross_entropy mean %3, %y : (tensor<7x4xf32>, tensor<7xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
