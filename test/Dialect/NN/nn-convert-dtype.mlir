// RUN: shoal-opt %s --nn-convert-dtype=to=f64 | FileCheck %s
// RUN: not shoal-opt %s --nn-convert-dtype=to=bf16 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: dtype must be f32 or f64, got: bf16

// Arguments, constants and results change together; integers stay, casts between floats go.
// CHECK-LABEL: func.func @model
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x4xf64> {nn.input = "x"}, %[[Y:[^:]*]]: tensor<8xi64> {nn.input = "y"}) -> (tensor<f64> {nn.loss})
// CHECK-NEXT: %[[C:.*]] = nn.constant dense<5.000000e-01> : tensor<f64>
// CHECK-NEXT: nn.constant dense<[1.000000e+00, -2.500000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf64>
// CHECK-NEXT: %[[M:.*]] = nn.mul %[[X]], %[[C]] : (tensor<8x4xf64>, tensor<f64>) -> tensor<8x4xf64>
// CHECK-NEXT: nn.add %[[M]]
// CHECK-NEXT: nn.cross_entropy mean %{{.*}}, %[[Y]] : (tensor<8x4xf64>, tensor<8xi64>) -> tensor<f64>
// CHECK-NEXT: return %{{.*}} : tensor<f64>
func.func @model(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8xi64> {nn.input = "y"}) -> (tensor<f32> {nn.loss}) {
  %c = nn.constant dense<0.5> : tensor<bf16>
  %d = nn.constant dense<[1.0, -2.5, 3.0, 4.0]> : tensor<4xf32>
  %0 = nn.cast %x : tensor<8x4xf32> -> tensor<8x4xbf16>
  %1 = nn.mul %0, %c : (tensor<8x4xbf16>, tensor<bf16>) -> tensor<8x4xbf16>
  %2 = nn.cast %1 : tensor<8x4xbf16> -> tensor<8x4xf32>
  %3 = nn.add %2, %d : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %4, %lse4 = nn.cross_entropy mean %3, %y : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  return %4 : tensor<f32>
}

// A cast that goes leaves the stage of the pipeline that it opens to the op behind it.
// CHECK-LABEL: func.func @stage
// CHECK-NEXT: nn.tanh %{{.*}} {pipe.stage = 1 : i64}
// CHECK-NEXT: return
func.func @stage(%x: tensor<8xbf16> {nn.input = "x"}) -> (tensor<8xf32> {nn.output = "y"}) {
  %0 = nn.cast %x {pipe.stage = 1 : i64} : tensor<8xbf16> -> tensor<8xf32>
  %1 = nn.tanh %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
