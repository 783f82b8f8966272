// A number that indexes no row of a table or no class of the loss ends the run before the step that would use it, with the file and the
// row: in training and in evaluation, on one device and where rows and classes are sharded, as numbers of 32 bits too.
// RUN: %python %support/indices.py %s --work %t "" "--mesh data=2" "--mesh tensor=2 --tensor-parallel" \
// RUN:   "--mesh data=2,tensor=2 --tensor-parallel --sequence-parallel"

func.func @tied(
    %ids: tensor<4x3xi32> {nn.input = "ids"},
    %y:   tensor<4x3xi64> {nn.input = "y"},
    %t:   tensor<11x6xf32> {nn.param = #nn.param<"t", init = uniform(-0.5, 0.5)>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.embedding %t, %ids : (tensor<11x6xf32>, tensor<4x3xi32>) -> tensor<4x3x6xf32>
  %1 = nn.sigmoid %0 : tensor<4x3x6xf32>
  %2 = nn.tensordot %1, %t axes = 1 {transpose_b} : (tensor<4x3x6xf32>, tensor<11x6xf32>) -> tensor<4x3x11xf32>
  %loss, %lse = nn.cross_entropy mean %2, %y : (tensor<4x3x11xf32>, tensor<4x3xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
