// A loss that is no number prints without a sign, whatever the processor makes of it.
// RUN: shoalc %s -o %t
// mpirun forwards the two streams by pipes of their own, in any order.
// RUN: shoal-run -n 1 %t --steps 1 >%t.log 2>%t.err
// RUN: FileCheck %s <%t.log
// CHECK: step 1/1 {{.*}}loss nan{{$}}
// RUN: FileCheck %s --check-prefix=WARNING <%t.err
// WARNING: warning: the loss is nan in step 1

func.func @no_number(%w: tensor<f32> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.neg %w : tensor<f32>
  %1 = nn.log %0 : tensor<f32>
  return %1 : tensor<f32>
}
