// Broadcast made of sends and receives, along a binomial tree: in round k (0, 1, ...) the 2^k ranks that have the value
// send it to the ranks 2^k further on. 2 rounds reach 4 ranks.
dist.mesh @mesh <["x"=4]>

func.func @broadcast_by_messages()
    -> (tensor<4xf32> {nn.output = "before"}, tensor<4xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %before = nn.add %count, %rank : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ranks = arith.constant 4 : index
  %rounds = arith.constant 2 : index
  %after, %reached = scf.for %k = %zero to %rounds step %one iter_args(%value = %before, %have = %one) -> (tensor<4xf32>, index) {
    %twice = arith.addi %have, %have : index
    %has = arith.cmpi ult, %i, %have : index
    %next = scf.if %has -> (tensor<4xf32>) {
      %to = arith.addi %i, %have : index
      %exists = arith.cmpi ult, %to, %ranks : index
      scf.if %exists {
        dist.send {"x"} %value to %to : tensor<4xf32>
      }
      scf.yield %value : tensor<4xf32>
    } else {
      %joins = arith.cmpi ult, %i, %twice : index
      %got = scf.if %joins -> (tensor<4xf32>) {
        %from = arith.subi %i, %have : index
        %message = dist.recv {"x"} from %from : tensor<4xf32>
        scf.yield %message : tensor<4xf32>
      } else {
        scf.yield %value : tensor<4xf32>
      }
      scf.yield %got : tensor<4xf32>
    }
    scf.yield %next, %twice : tensor<4xf32>, index
  }
  return %before, %after : tensor<4xf32>, tensor<4xf32>
}
