// RUN: shoal-opt %s --exec-lower --exec-verify | FileCheck %s -enable-var-scope
// RUN: shoal-opt %s --exec-lower="overlap=false" --exec-verify | FileCheck %s -enable-var-scope --check-prefix=SERIAL

// Messages with dist.async, here of rank 1, each way on a stream of its own and no row for a whole group: what it sends to
// rank 2 (stream 3) waits for no receive, neither from rank 0 (stream 2) nor from rank 2 (stream 4). One message of each
// way is ahead: the receive of micro-batch 1 starts when stream 0 gets to what reads micro-batch 0, and that of 2 when it
// gets to what reads 1. What is sent next is written once the send before it has ended.
dist.mesh @mesh <["pipe"=3]>
// CHECK: exec.point_to_point to [] recvs(%[[R0:.*]] : {{.*}}) from [array<i64: -1, 0, -1>] stream 2 {exec.at = array<i64: 1>, name = "recv"}
// CHECK: %[[F0:.*]] = exec.launch @k ins(%[[R0]] : {{.*}} outs(%[[S0:.*]] : {{.*}} {exec.at = array<i64: 1>}
// CHECK-NOT: exec.wait
// CHECK: exec.point_to_point {{.*}}recvs(%[[R1:.*]] : {{.*}}) from [array<i64: -1, 0, -1>] stream 2 {exec.at = array<i64: 1>, name = "recv"}
// CHECK: exec.wait %[[F0]] stream 3 {exec.at = array<i64: 1>}
// CHECK-NEXT: %[[SENT:.*]] = exec.point_to_point sends(%[[S0]] : {{.*}}) to [array<i64: -1, 2, -1>] from [] stream 3 {exec.at = array<i64: 1>, name = "send"}
// CHECK: exec.wait %[[SENT]] {exec.at = array<i64: 1>}
// CHECK: exec.launch @k ins(%[[R1]] : {{.*}} outs(%[[S1:.*]] : {{.*}} {exec.at = array<i64: 1>}
// CHECK: exec.wait %[[F0]] stream 2 {exec.at = array<i64: 1>}
// CHECK-NEXT: exec.point_to_point {{.*}}recvs(%[[R2:.*]] : {{.*}}) from [array<i64: -1, 0, -1>] stream 2 {exec.at = array<i64: 1>, name = "recv"}
// CHECK: exec.point_to_point sends(%[[S1]] : {{.*}}) to [array<i64: -1, 2, -1>] from [] stream 3 {exec.at = array<i64: 1>, name = "send"}
// CHECK: exec.point_to_point {{.*}}recvs(%[[B0:.*]] : {{.*}}) from [array<i64: -1, 2, -1>] stream 4 {exec.at = array<i64: 1>, name = "recv"}
// SERIAL-NOT: stream
// SERIAL: exec.point_to_point {{.*}} name = "recv send"}
// SERIAL: exec.point_to_point {{.*}} name = "recv send recv"}
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel}
func.func @middle(%x: tensor<16xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<16xf32> {nn.output = "y"}, tensor<16xf32> {nn.output = "z"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %r0 = dist.recv {"pipe"} from %zero {dist.async, dist.at = array<i64: 1>, dist.microbatch = 0 : i64} : tensor<16xf32>
  %f0 = exec.call @k(%r0) {dist.at = array<i64: 1>} : (tensor<16xf32>) -> tensor<16xf32>
  %r1 = dist.group {
    %m = dist.recv {"pipe"} from %zero {dist.async, dist.microbatch = 1 : i64} : tensor<16xf32>
    dist.send {"pipe"} %f0 to %two {dist.async, dist.microbatch = 0 : i64} : tensor<16xf32>
    dist.yield %m : tensor<16xf32>
  } {dist.at = array<i64: 1>} : tensor<16xf32>
  %f1 = exec.call @k(%r1) {dist.at = array<i64: 1>} : (tensor<16xf32>) -> tensor<16xf32>
  %g:2 = dist.group {
    %m = dist.recv {"pipe"} from %zero {dist.async, dist.microbatch = 2 : i64} : tensor<16xf32>
    dist.send {"pipe"} %f1 to %two {dist.async, dist.microbatch = 1 : i64} : tensor<16xf32>
    %b = dist.recv {"pipe"} from %two {dist.async, dist.microbatch = 0 : i64} : tensor<16xf32>
    dist.yield %m, %b : tensor<16xf32>, tensor<16xf32>
  } {dist.at = array<i64: 1>} : tensor<16xf32>, tensor<16xf32>
  %f2 = exec.call @k(%g#0) {dist.at = array<i64: 1>} : (tensor<16xf32>) -> tensor<16xf32>
  %b0 = exec.call @k(%g#1) {dist.at = array<i64: 1>} : (tensor<16xf32>) -> tensor<16xf32>
  dist.send {"pipe"} %x to %one {dist.async, dist.at = array<i64: 0>} : tensor<16xf32>
  dist.send {"pipe"} %x to %one {dist.async, dist.at = array<i64: 0>} : tensor<16xf32>
  dist.send {"pipe"} %x to %one {dist.async, dist.at = array<i64: 0>} : tensor<16xf32>
  %h0 = dist.recv {"pipe"} from %one {dist.async, dist.at = array<i64: 2>} : tensor<16xf32>
  dist.send {"pipe"} %h0 to %one {dist.async, dist.at = array<i64: 2>} : tensor<16xf32>
  %h1 = dist.recv {"pipe"} from %one {dist.async, dist.at = array<i64: 2>} : tensor<16xf32>
  return %f2, %b0 : tensor<16xf32>, tensor<16xf32>
}
