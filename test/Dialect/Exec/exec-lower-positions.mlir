// RUN: shoal-opt %s -split-input-file --exec-lower --exec-verify | FileCheck %s -enable-var-scope

// Two stages: each row is at the positions of its op, so are results and waits, and no position waits for what only
// others run. Arguments are held where rows touch them, those of both positions first; what no position has together
// shares bytes, and the arena is the fuller rank's.
dist.mesh @mesh <["pipe"=2]>
// CHECK: exec.program @stages infer arena = 384 rows = 0 bytes = <params = 144, grads = 0, optimizer = 0, activations = 192, workspace = 0>
// CHECK: %w0 = exec.arg param "w0" at 128 {{.*}}{exec.at = array<i64: 0>}
// CHECK: %w1 = exec.arg param "w1" at 128 {{.*}}{exec.at = array<i64: 1>}
// CHECK: %u = exec.arg param "u" at 0 init = constant(1.000000e+00, 0.000000e+00) : <4xf32>
// CHECK: %x = exec.arg input "x" at 192 {exec.at = array<i64: 0>}
// CHECK: %s = exec.arg input "s" at 64 : <16xf32>
// CHECK: exec.buffer activation at 256
// CHECK: %[[T0:.*]] = exec.launch @k ins(%x : {{.*}} {exec.at = array<i64: 0>}
// CHECK: exec.wait %[[T0]] stream 1 {exec.at = array<i64: 0>}
// CHECK: %[[T1:.*]] = exec.point_to_point sends({{.*}} {exec.at = array<i64: 0>, name = "send"}
// CHECK: exec.launch @k_add ins(%w0, %s : {{.*}} inplace [0] {exec.at = array<i64: 0>}
// CHECK: %[[R:.*]] = exec.buffer activation at 256
// CHECK: %[[T2:.*]] = exec.point_to_point {{.*}} {exec.at = array<i64: 1>, name = "recv"}
// CHECK: exec.wait %[[T2]] {exec.at = array<i64: 1>}
// CHECK: exec.launch @k ins(%[[R]] : {{.*}} {exec.at = array<i64: 1>}
// CHECK: exec.probe output "y" %{{.*}} {exec.at = array<i64: 1>}
// CHECK: exec.copy %w1 to %{{.*}} {exec.at = array<i64: 1>, name = "select"}
// CHECK: exec.probe output "w" %{{.*}} {exec.at = array<i64: 1>}
// CHECK: exec.wait %[[T1]] {exec.at = array<i64: 0>}
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel}
func.func private @k_add(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
func.func @stages(%x: tensor<16xf32> {nn.input = #nn.input<"x", unbatched>}, %s: tensor<16xf32> {nn.input = #nn.input<"s", unbatched>},
    %w0: tensor<16xf32> {nn.param = #nn.param<"w0", init = ones>}, %w1: tensor<32xf32> {nn.param = #nn.param<"w1", init = ones>},
    %u: tensor<4xf32> {nn.param = #nn.param<"u", init = ones>})
    -> (tensor<16xf32> {nn.updates = "w0"}, tensor<16xf32> {nn.output = "y"}, tensor<32xf32> {nn.output = "w"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %h = exec.call @k(%x) {dist.at = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
  dist.send {"pipe"} %h to %one {dist.at = array<i64: 0>} : tensor<16xf32>
  %n = exec.call @k_add(%w0, %s) {dist.at = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<16xf32>
  %y = exec.call @k(%r) {dist.at = array<i64: 1>} : (tensor<16xf32>) -> tensor<16xf32>
  %z = exec.call @k_add(%y, %s) {dist.at = array<i64: 1>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %w = dist.select [0, 0] %w1 {dist.at = array<i64: 1>} : tensor<32xf32>
  return %n, %z, %w : tensor<16xf32>, tensor<16xf32>, tensor<32xf32>
}

// -----

// Of a group of messages a position has what it sends and receives itself, so both ends of an exchange may lie on the
// same bytes; who has no end does not run it.
dist.mesh @mesh <["pipe"=3]>
// CHECK: exec.program @exchange infer arena = 128 rows
// CHECK: %a = exec.arg input "a" at 0 {exec.at = array<i64: 0>}
// CHECK: %b = exec.arg input "b" at 0 {exec.at = array<i64: 1>}
// CHECK: exec.buffer activation at 64
// CHECK: exec.buffer activation at 64
// CHECK: exec.point_to_point sends(%a, %b : {{.*}} {exec.at = array<i64: 0, 1>, name = "send send recv recv"}
func.func @exchange(%a: tensor<16xf32> {nn.input = #nn.input<"a", unbatched>}, %b: tensor<16xf32> {nn.input = #nn.input<"b", unbatched>})
    -> (tensor<16xf32> {nn.output = "y"}, tensor<16xf32> {nn.output = "z"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0:2 = dist.group {
    dist.send {"pipe"} %a to %one {dist.at = array<i64: 0>} : tensor<16xf32>
    dist.send {"pipe"} %b to %zero {dist.at = array<i64: 1>} : tensor<16xf32>
    %1 = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<16xf32>
    %2 = dist.recv {"pipe"} from %one {dist.at = array<i64: 0>} : tensor<16xf32>
    dist.yield %1, %2 : tensor<16xf32>, tensor<16xf32>
  } : tensor<16xf32>, tensor<16xf32>
  return %0#0, %0#1 : tensor<16xf32>, tensor<16xf32>
}

// -----

// A value may be reduced in place where other positions read it later, and not where its own do. An aligned copy is for
// the positions of those who read it.
dist.mesh @mesh <["pipe"=2, "data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
// CHECK: exec.program @inplace
// CHECK: exec.launch @k ins(%x : {{.*}}) outs(%[[A:.*]] : !exec.buffer<2xf32>) ->
// CHECK: exec.all_reduce {"data"} sum %[[A]] to %[[A]] stream 1 {exec.at = array<i64: 0, 1>,
// CHECK: exec.launch @k ins(%x : {{.*}}) outs(%[[B:.*]] : !exec.buffer<2xf32>) ->
// CHECK: exec.all_reduce {"data"} max %[[B]] to %[[C:.*]] stream 1 {exec.at = array<i64: 0, 1>,
// CHECK: exec.copy %{{.*}} to %[[L:.*]] {exec.at = array<i64: 2, 3>, name = "align"}
// CHECK: exec.launch @k ins(%[[L]] : {{.*}} {exec.at = array<i64: 2, 3>}
// CHECK: exec.copy %{{.*}} to %[[M:.*]] {exec.at = array<i64: 0, 1>, name = "align"}
// CHECK: exec.launch @k ins(%[[M]] : {{.*}} {exec.at = array<i64: 0, 1>}
func.func @inplace(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>}, %bucket: tensor<4xf32> {nn.input = #nn.input<"p", unbatched>})
    -> (tensor<2xf32> {nn.output = "a"}, tensor<2xf32> {nn.output = "b"}, tensor<2xf32> {nn.output = "c"},
        tensor<2xf32> {nn.output = "d"}, tensor<2xf32> {nn.output = "e"}, tensor<2xf32> {nn.output = "f"}) {
  %a = exec.call @k(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %0 = dist.all_reduce {"data"} sum %a {dist.at = array<i64: 0, 1>} : tensor<2xf32>
  %1 = exec.call @k(%a) {dist.at = array<i64: 2, 3>} : (tensor<2xf32>) -> tensor<2xf32>
  %b = exec.call @k(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = dist.all_reduce {"data"} max %b {dist.at = array<i64: 0, 1>} : tensor<2xf32>
  %3 = exec.call @k(%b) {dist.at = array<i64: 1, 2>} : (tensor<2xf32>) -> tensor<2xf32>
  %part = dist.unpack %bucket[2:4] : (tensor<4xf32>) -> tensor<2xf32>
  %4 = exec.call @k(%part) {dist.at = array<i64: 2, 3>} : (tensor<2xf32>) -> tensor<2xf32>
  %5 = exec.call @k(%part) {dist.at = array<i64: 0, 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Of a parameter that the stages share each part is kept, also the one that no row touches.
dist.mesh @mesh <["pipe"=2, "data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
// CHECK: exec.program @parts
// CHECK: exec.arg param "w" at 0 {{.*}} : <2xf32>
// CHECK: exec.arg param "v" at 64 {{.*}}{exec.at = array<i64: 0, 1>}
func.func @parts(
    %w: tensor<2xf32> {nn.param = #nn.param<"w", init = ones>, dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{"pipe"}]>>},
    %v: tensor<2xf32> {nn.param = #nn.param<"v", init = ones>, dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>})
    -> (tensor<2xf32> {nn.output = "y"}, tensor<2xf32> {nn.output = "z"}) {
  %0 = exec.call @k(%w) {dist.at = array<i64: 0, 1>} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = exec.call @k(%v) {dist.at = array<i64: 0, 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
