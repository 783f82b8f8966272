// A local program written by hand (L2) compiles and runs: what each collective does is what its definition says,
// on ranks whose shards of 7 elements are padded, and in equal parts of 12 elements.
// RUN: %python %support/local_program.py %s --work %t 2 3 4

dist.mesh @mesh <["x"=RANKS]>

// Every value but shards is whole; outputs are those of rank 0.
func.func @tour(%x: tensor<7xf64> {nn.input = #nn.input<"x", unbatched>})
    -> (tensor<7xf64> {nn.output = "owner"}, tensor<7xf64> {nn.output = "sum"}, tensor<7xf64> {nn.output = "most"},
        tensor<7xf64> {nn.output = "scattered"}, tensor<7xf64> {nn.output = "root"}, tensor<12xf64> {nn.output = "parts"},
        tensor<12xf64> {nn.output = "gathered"}, tensor<7xf64> {nn.output = "moved"}, tensor<7xf64> {nn.output = "ring"},
        tensor<7xf64> {nn.output = "hops"}, tensor<7xf64> {nn.output = "back"}, tensor<7xf64> {nn.output = "beside"}) {
  %position = dist.axis_index {"x"} * 1 : tensor<i64>
  %p = nn.cast %position : tensor<i64> -> tensor<f64>
  %mine = nn.mul %x, %p : (tensor<7xf64>, tensor<f64>) -> tensor<7xf64>

  %shard = dist.all_slice {"x"} dim = 0 %x : tensor<7xf64> -> tensor<SHARDxf64>
  %scaled = nn.mul %shard, %p : (tensor<SHARDxf64>, tensor<f64>) -> tensor<SHARDxf64>
  %owner = dist.all_gather {"x"} dim = 0 %scaled : tensor<SHARDxf64> -> tensor<7xf64>

  %sum = dist.all_reduce {"x"} sum %mine : tensor<7xf64>
  %most = dist.all_reduce {"x"} max %mine : tensor<7xf64>

  %part = dist.reduce_scatter {"x"} sum dim = 0 %x : tensor<7xf64> -> tensor<SHARDxf64>
  %scattered = dist.all_gather {"x"} dim = 0 %part : tensor<SHARDxf64> -> tensor<7xf64>

  %root = dist.broadcast {"x"} root = 1 %mine : tensor<7xf64> -> tensor<7xf64>
  %twelve = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : tensor<12xf64>
  %scaled12 = nn.mul %twelve, %p : (tensor<12xf64>, tensor<f64>) -> tensor<12xf64>
  %piece = dist.scatter {"x"} root = 1 %scaled12 : tensor<12xf64> -> tensor<PARTxf64>
  %parts = dist.all_gather {"x"} dim = 0 %piece : tensor<PARTxf64> -> tensor<12xf64>
  %weighted = nn.mul %piece, %p : (tensor<PARTxf64>, tensor<f64>) -> tensor<PARTxf64>
  %gathered = dist.gather {"x"} root = 0 %weighted : tensor<PARTxf64> -> tensor<12xf64>

  // Rank 0 sends to rank 1; everybody else holds zeros.
  %there = dist.collective_permute {"x"} from [0] to [1] %x : tensor<7xf64>
  %moved = dist.all_reduce {"x"} sum %there : tensor<7xf64>

  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  %n = arith.constant RANKS : index
  %last = arith.constant LAST : index
  %up = arith.addi %i, %one : index
  %next = arith.remui %up, %n : index
  %down = arith.addi %i, %last : index
  %previous = arith.remui %down, %n : index
  %ring = dist.group {
    dist.send {"x"} %mine to %next : tensor<7xf64>
    %got = dist.recv {"x"} from %previous : tensor<7xf64>
    dist.yield %got : tensor<7xf64>
  } : tensor<7xf64>
  // Hops of two rings in flight beside a reduction, each on a stream of its own.
  %hop1 = dist.permute_start {"x"} from [FROM] to [TO] %mine : tensor<7xf64> -> !dist.future<tensor<7xf64>>
  %away = dist.permute_start {"x"} from [TO] to [FROM] %mine : tensor<7xf64> -> !dist.future<tensor<7xf64>>
  %beside = dist.all_reduce {"x"} sum %mine : tensor<7xf64>
  %came1 = dist.wait %hop1 : !dist.future<tensor<7xf64>> -> tensor<7xf64>
  %hop2 = dist.permute_start {"x"} from [FROM] to [TO] %came1 : tensor<7xf64> -> !dist.future<tensor<7xf64>>
  %hops = dist.wait %hop2 : !dist.future<tensor<7xf64>> -> tensor<7xf64>
  %back = dist.wait %away : !dist.future<tensor<7xf64>> -> tensor<7xf64>
  return %owner, %sum, %most, %scattered, %root, %parts, %gathered, %moved, %ring, %hops, %back, %beside
      : tensor<7xf64>, tensor<7xf64>, tensor<7xf64>, tensor<7xf64>, tensor<7xf64>, tensor<12xf64>, tensor<12xf64>,
        tensor<7xf64>, tensor<7xf64>, tensor<7xf64>, tensor<7xf64>, tensor<7xf64>
}
