#ifndef SHOAL_EXEC_PASSES
#define SHOAL_EXEC_PASSES

include "mlir/Pass/PassBase.td"

def InsertTransfersPass : Pass<"exec-insert-transfers", "::mlir::ModuleOp"> {
  let summary = "What reads an argument on the host runs there";
  let description = [{
    Arguments may lie in the host's memory (`dist.memory`). Where an op runs follows from that: one that becomes part of a kernel and reads such an argument runs on
    the host, on copies there of whatever else it reads. What it makes goes back to the device, unless it replaces an argument that lies on the host; so the update
    stays with the state, its gradient comes and the new parameters go. Library calls and communication are the device's: they read a copy. Each value is
    copied once, right behind the op that makes it, before a cast that only widens it.

    ```mlir
    %0:2 = nn.momentum_update %w, %g, %m lr = %lr {...} : tensor<4xf32>, tensor<f32>     // %m is dist.memory = "host"
    ```
    becomes
    ```mlir
    %1 = exec.transfer %w to host : tensor<4xf32>
    %2 = exec.transfer %g to host : tensor<4xf32>
    %0:2 = nn.momentum_update %1, %2, %m lr = %lr {...} : tensor<4xf32>, tensor<f32>
    %3 = exec.transfer %0#0 to device : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::shoal::exec::ExecDialect"];
}

def OutlineKernelsPass : Pass<"exec-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Fuse nn ops into kernels";
  let description = [{
    Decides, once for every target, what runs together: all `nn` ops but matmul move into functions marked
    `exec.kernel`. An op joins the kernel of a producer when both run over the same elements, or over the same rows: elementwise chains, a
    reduction over the last dimension and what is broadcast back from it, a reduction at the end of a chain. Nothing is computed
    twice but constants. Ops of the host and of the device are apart (`exec-insert-transfers`). A fusion that would order two kernels both ways is not made. Equal kernels are one function; the ids of random ops move into
    their operands (`nn.dropout`), so that layers which differ in nothing else have equal ones.

    A result that replaces an argument (`nn.updates`) overwrites it in place when the kernel reads the old value element by element and
    every other reader can come before; the calls are put in such an order.

    ```mlir
    %1 = nn.add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    %2 = nn.relu %1 : tensor<8x4xf32>
    ```
    becomes
    ```mlir
    %2 = exec.call @k_add_relu_0(%0, %b) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::shoal::exec::ExecDialect", "::mlir::func::FuncDialect"];
}

def LowerPass : Pass<"exec-lower", "::mlir::ModuleOp"> {
  let summary = "From tensors to buffers, streams and waits";
  let description = [{
    Turns the outlined step function into an `exec.program`. Values get storage: reshapes share it, a bucket's tensors are written directly into
    their place in it, an all-reduce works in place, all else has its own buffer. Collectives run on stream 1, started where they stand;
    the other stream waits before the first row that reads or overwrites what they touch. Then buffers get offsets: two share bytes
    only if every access of one is known, through streams and waits, to end before the other's first.

    What some mesh positions run of the step (`dist.at`) are rows that these run (`exec.at`). Each position has its own part of the program in order: waits for
    rows that it runs, results that it has, arguments that one of its rows touches; and what no position has at the same time may share bytes.

    Messages are on stream 1, too, a `dist.group` one row; those with `dist.async` have streams behind it, such that no position has two
    partners, or both ways to one, on one stream. On each, one message is under way while stream 0 works on the one before: a receive
    waits until what came before is read, and what is sent next is written once the send before it has ended.

    ```mlir
    %g = nn.matmul %x, %dy {transpose_a} : ...
    %r = dist.all_reduce {"data"} sum %g : tensor<64x10xf32>
    %n = exec.call @k_sgd_update_0(%w, %r) : ...
    ```
    becomes
    ```mlir
    %t0 = exec.gemm %x, %dy into %b m = 64 n = 10 k = 32 ... -> !exec.token
    exec.wait %t0 stream 1
    %t1 = exec.all_reduce {"data"} sum %b to %b stream 1 : ... -> !exec.token
    exec.wait %t1
    exec.launch @k_sgd_update_0 ins(%w, %b : ...) inplace [0]
    ```
  }];
  let dependentDialects = ["::shoal::exec::ExecDialect"];
  let options = [
    Option<"overlap", "overlap", "bool", "true", "run collectives on a stream of their own">,
  ];
}

def ShareArenaPass : Pass<"exec-share-arena", "::mlir::ModuleOp"> {
  let summary = "The evaluation program works on the training program's parameters";
  let description = [{
    A module may hold a training program and an evaluation program of the same model, which run in turn. They have one arena: what lives from
    step to step (parameters and state) is where the training program has it, and the evaluation program's inputs and buffers lie behind
    that, on bytes that the next training step fills anew. Both programs' `arena` is the larger one. Without an evaluation program nothing changes.

    ```mlir
    exec.program @f train arena = 512 ... {
      %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
      %v = exec.arg state "w.velocity" of "w" at 64 : !exec.buffer<16xf32>
      ...
    exec.program @f_eval eval arena = 128 ... {
      %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
      %x = exec.arg input "x" at 64 : !exec.buffer<16xf32>
    ```
    the second program becomes
    ```mlir
    exec.program @f_eval eval arena = 512 ... {
      %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
      %x = exec.arg input "x" at 128 : !exec.buffer<16xf32>
    ```
  }];
}

def LimitMemoryPass : Pass<"exec-limit-memory", "::mlir::ModuleOp"> {
  let summary = "Refuses a program that needs more memory than a rank has";
  let description = [{
    Compares each program's `arena`, which every rank allocates, with `limit`. The error says what the fullest rank has of
    each class at most. Nothing changes.
  }];
  let options = [Option<"limit", "limit", "int64_t", /*default=*/"0", "bytes that a rank may hold">];
}

def VerifyPass : Pass<"exec-verify", "::mlir::ModuleOp"> {
  let summary = "Contract of the rank program";
  let description = [{
    Derives from the program alone, without what `exec-lower` knew: every buffer lies in the arena; buffers in use at the same time do not
    overlap; rows of different streams that touch the same bytes, one of them writing, are ordered by tokens; nothing is read
    at a mesh position before it is written there (what a kernel makes of bytes that a position was not given counts as not written); a kernel's written buffers overlap no other; every token is waited for, and at the end stream 0 has waited for all rows;
    only copies touch both memories, and only kernels that are `exec.host` touch the host's without being copies; no result has two probes, and a probe reads bytes that are complete; state is of a parameter of the program; the module holds
    one program, or one of training and one of evaluation. An evaluation program beside a training program has the same parameters
    at the same places, and writes nothing that lives from step to step. On all mesh positions together: every message has its other end, of
    the same size, and no rows wait for each other in a circle. A send counts as ended when its receive has started, as without buffering:

    ```mlir
    exec.point_to_point sends(%a : ...) to [array<i64: 1, 0>] from [] {name = "send"}
    exec.point_to_point to [] recvs(%b : ...) from [array<i64: 1, 0>] {name = "recv"}
    ```
    is refused: 'send' at mesh position 0 waits for 'send' at mesh position 1, which waits for 'send' at mesh position 0. In one row they progress together.
  }];
}

#endif
