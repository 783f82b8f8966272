// A parameter that a hand lays flat: the optimizer's state lies as its parameter, so Adam gathers no more than SGD.
// RUN: shoalc %s --emit exec -o /dev/null --optimizer adamw --verify-plan --explain 2>&1 | FileCheck %s
// RUN: shoalc %s --emit exec -o /dev/null --lr 0.1 --verify-plan --explain 2>&1 | FileCheck %s
// CHECK: equals one device, --mode train
// CHECK: equals one device, --mode eval
// CHECK: in total
// CHECK-NEXT: all_gather {"data"}: 1 time
// CHECK-NEXT: all_reduce {"data"}: 2 times
// CHECK-NEXT: reduce_scatter {"data"}: 1 time
// Inference has nothing to update, and says so.
// RUN: shoalc %s --emit exec -o /dev/null --mode infer 2>&1 | FileCheck %s --check-prefix=INFER
// INFER: remark: "w" stays whole and in no bucket: no optimizer updates it
dist.mesh @mesh <["data"=3]>
func.func @m(
    %x: tensor<6x3xf64> {nn.input = "x"},
    %w: tensor<3x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>, dist.flat = #dist.flat<{"data"}, per_use>},
    %b: tensor<5xf64> {nn.param = #nn.param<"b", init = normal(0.0, 0.5)>}) -> (tensor<f64> {nn.loss}, tensor<6x5xf64> {nn.output = "y"}) {
  %0 = nn.matmul %x, %w : (tensor<6x3xf64>, tensor<3x5xf64>) -> tensor<6x5xf64>
  %1 = nn.add %0, %b : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %2 = nn.tanh %1 : tensor<6x5xf64>
  %3 = nn.mul %2, %2 : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %loss = nn.reduce mean %3 dims = [0, 1] : tensor<6x5xf64> -> tensor<f64>
  return %loss, %2 : tensor<f64>, tensor<6x5xf64>
}
