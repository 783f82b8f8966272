// All-reduce by a ring of messages (Patarasuk and Yuan 2009): 3 steps of a reduce-scatter, 3 of an all-gather. In
// every step each rank sends one chunk, a part in 4, to the next rank and receives one from the previous rank, so that
// all links are busy in all steps and a rank sends 2 * 3 / 4 of its buffer altogether.
dist.mesh @mesh <["x"=4]>

func.func @ring_all_reduce()
    -> (tensor<8xf32> {nn.output = "before"}, tensor<8xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32>
  %before = nn.add %count, %rank : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %chunk = arith.constant 2 : index // elements
  %ranks = arith.constant 4 : index
  %steps = arith.constant 3 : index
  %up = arith.addi %i, %one : index
  %next = arith.remui %up, %ranks : index
  %down = arith.addi %i, %steps : index
  %previous = arith.remui %down, %ranks : index

  // Reduce-scatter. Rank i begins with its own chunk i; what it receives in step s is chunk i - s - 1, to which it
  // adds its own. At the end it has all of chunk i + 1.
  %first = arith.muli %i, %chunk : index
  %first_i64 = arith.index_cast %first : index to i64
  %first_start = tensor.from_elements %first_i64 : tensor<i64>
  %mine = nn.dynamic_slice %before dim = 0 start = %first_start : tensor<8xf32> -> tensor<2xf32>
  %whole = scf.for %s = %zero to %steps step %one iter_args(%partial = %mine) -> (tensor<2xf32>) {
    %got = dist.group {
      dist.send {"x"} %partial to %next : tensor<2xf32>
      %message = dist.recv {"x"} from %previous : tensor<2xf32>
      dist.yield %message : tensor<2xf32>
    } : tensor<2xf32>
    %back = arith.subi %down, %s : index // i - s - 1 + 4
    %number = arith.remui %back, %ranks : index
    %start = arith.muli %number, %chunk : index
    %start_i64 = arith.index_cast %start : index to i64
    %start_tensor = tensor.from_elements %start_i64 : tensor<i64>
    %own = nn.dynamic_slice %before dim = 0 start = %start_tensor : tensor<8xf32> -> tensor<2xf32>
    %sum = nn.add %got, %own : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    scf.yield %sum : tensor<2xf32>
  }

  // All-gather. What arrives in step s is chunk i - s; it goes into its place in the result, and on to the next rank in
  // step s + 1.
  %empty = nn.constant dense<0.0> : tensor<8xf32>
  %after, %passed = scf.for %s = %zero to %ranks step %one iter_args(%result = %empty, %held = %whole) -> (tensor<8xf32>, tensor<2xf32>) {
    %ahead = arith.addi %next, %ranks : index
    %back = arith.subi %ahead, %s : index // i + 1 - s + 4
    %number = arith.remui %back, %ranks : index
    %start = arith.muli %number, %chunk : index
    %start_i64 = arith.index_cast %start : index to i64
    %start_tensor = tensor.from_elements %start_i64 : tensor<i64>
    %more = nn.dynamic_update_slice %result, %held dim = 0 start = %start_tensor : tensor<8xf32>, tensor<2xf32>
    // The last chunk has come all the way round.
    %goes_on = arith.cmpi ult, %s, %steps : index
    %got = scf.if %goes_on -> (tensor<2xf32>) {
      %received = dist.group {
        dist.send {"x"} %held to %next : tensor<2xf32>
        %message = dist.recv {"x"} from %previous : tensor<2xf32>
        dist.yield %message : tensor<2xf32>
      } : tensor<2xf32>
      scf.yield %received : tensor<2xf32>
    } else {
      scf.yield %held : tensor<2xf32>
    }
    scf.yield %more, %got : tensor<8xf32>, tensor<2xf32>
  }
  return %before, %after : tensor<8xf32>, tensor<8xf32>
}
