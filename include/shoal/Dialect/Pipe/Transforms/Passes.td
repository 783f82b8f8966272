#ifndef SHOAL_PIPE_PASSES
#define SHOAL_PIPE_PASSES

include "mlir/Pass/PassBase.td"

// The costs that schedules are made and timed with.
defvar costOptions = [
  Option<"forward", "forward", "double", "1", 
         "duration of F: of a rank's whole share of a micro-batch, all its chunks">,
  Option<"backward", "backward", "double", "0", "the same of B; 0: of I and W together">,
  Option<"backwardInput", "backward-input", "double", "1", "the same of I">,
  Option<"backwardWeight", "backward-weight", "double", "1", "the same of W">,
  Option<"transfer", "transfer", "double", "0", "duration of a message">,
  Option<"norm", "norm", "double", "0", "duration of N, from when the last rank has come">,
  Option<"update", "update", "double", "0", "duration of U">,
];

def SchedulePass : Pass<"pipe-schedule", "::mlir::ModuleOp"> {
  let summary = "make a schedule, by name or from a file";
  let description = [{
    Adds a `pipe.schedule` to the module. naive: one micro-batch at a time. gpipe: all forwards, then all backwards.
    1f1b: one of each in turn, with the fewest stashes. interleaved: 1f1b of several chunks per rank. zb-h1, zb-h2 and
    zb-v split the backward pass, so that gradients of weights fill what would be bubbles: with the stashes of 1f1b,
    with twice as many, and with 1f1b's and two chunks per rank, the second one back from the last rank to the first.
    Orders are those of torch.distributed.pipelining where it has the schedule. zb-h2 and zb-v take the shortest order
    by the costs, among the published one and list schedules within the same stash.

    With `file` the order is the user's: text or JSON, a line per rank (`shoal/Schedule/Text.h`); numbers that are said
    beside it must be those of the file, and one that cannot run is refused with its line. The norm and the update of
    `optimizer`, which the file may leave out, then follow all else of each rank; the file has none that the step has not.
    Sends and receives that a schedule has not are derived from its dependencies, such that no rank waits in a circle even
    if every send waits for its receive. Without `messages` they are left out.

    Costs are the options' durations of equal stages, or with `estimate` those of the step's own: each stage's
    operations of products, bytes of operands and results and bytes sent to others, at the rates of
    `shoal/Dialect/Dist/Transforms/OpCost.h`, or what a run has measured.

    ```mlir
    // --pipe-schedule="schedule=1f1b ranks=2 microbatches=2 optimizer=update" adds
    pipe.schedule @schedule placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
      "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 U",
      "RF0<0 F0 RF1<0 B0 SB0>0 F1 B1 SB1>0 U"
    ]
    ```
  }];
  let options = !listconcat([
    Option<"schedule", "schedule", "std::string", "\"\"",
           "naive, gpipe, 1f1b, interleaved, zb-h1, zb-h2 or zb-v; 1f1b when neither this nor file is said">,
    Option<"ranks", "ranks", "int64_t", "0", "ranks of the pipeline; 0: 2, or those of the file">,
    Option<"microbatches", "microbatches", "int64_t", "0", "micro-batches of a step; 0: 4, or those of the file">,
    Option<"chunks", "chunks", "int64_t", "0",
           "stages per rank; 0: 2 of interleaved and zb-v, 1 of the others, or those of the file">,
    Option<"optimizer", "optimizer", "std::string", "\"\"",
           "what the step has: none, update, or norm, for which all ranks' updates wait; none when this is not said, or as "
           "the file has it">,
    Option<"file", "file", "std::string", "\"\"", "read the schedule from this file instead">,
    Option<"fileText", "file-text", "std::string", "\"\"", "what stands in the file, where it has been read already">,
    Option<"forwardOnly", "forward-only", "bool", "false", "of a step without gradients, as evaluation is">,
    Option<"messages", "messages", "bool", "true", "with sends and receives">,
    Option<"symbol", "symbol", "std::string", "\"schedule\"", "the name of the op">,
    Option<"estimate", "estimate", "bool", "false",
           "costs are those of the module's step, whose region over micro-batches is to be cut, not those below">,
    Option<"costsFile", "costs-file", "std::string", "\"\"",
           "what a run has measured of each stage (shoal/Schedule/Profile.h) instead of these durations">,
  ], costOptions);
  let dependentDialects = ["::shoal::pipe::PipeDialect"];
}

def AssignStagesPass : Pass<"pipe-assign-stages", "::mlir::ModuleOp"> {
  let summary = "which stage of the pipeline computes what";
  let description = [{
    Gives every op of the forward pass that computes with an input and a parameter its `pipe.stage`, before
    `nn-differentiate`, so that gradients inherit it. With a mesh axis `pipe` of P ranks there are P times `chunks`
    stages; without one, stages of the file are dropped, since the program is not cut.

    Where ops of the file have a stage, each says where that begins, and what follows it is in it, too. A stage that the
    file names and that has none of these ops computes nothing, which a remark tells. Evaluation has the stages of its
    training, some of which may compute nothing there, as in inference those that no output needs.
    Otherwise consecutive layers (`nn.layer`; ops outside of layers by themselves) are cut such that the slowest stage
    costs the least, by operations of products and bytes that are read and written: dynamic programming over units and
    stages. Layers need not divide by stages. No cut is between what is made of all rows, as the mean of batch_norm, and
    the rows that read it.

    A cut may need more memory than ranks have. `lighter = n` takes, n times, the fastest of the cuts whose fullest stage
    holds fewer bytes than that of the last: parameters with their gradients and state, and what the backward pass reads of
    as many micro-batches as the schedule keeps at once. These bytes are an estimate, for no plan has been partitioned yet;
    `shoalc --memory-limit-gb` asks for lighter ones until the arena itself fits.

    What needs no parameter, as masks and positions, has no stage: each stage that reads it computes it. What needs
    parameters alone, as their casts, is computed where they lie.

    ```mlir
    %0 = nn.matmul %x, %w0 : ...
    %1 = nn.matmul %0, %w1 : ...
    // with "pipe"=2 becomes
    %0 = nn.matmul %x, %w0 {pipe.stage = 0 : i64} : ...
    %1 = nn.matmul %0, %w1 {pipe.stage = 1 : i64} : ...
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "stages per rank">,
    Option<"file", "file", "std::string", "\"\"", "file of a schedule, whose chunks these are instead">,
    Option<"fileText", "file-text", "std::string", "\"\"", "what stands in the file, where it has been read already">,
    Option<"lighter", "lighter", "int64_t", "0", "how many cuts hold more than the one to take">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "without a file, what tells how much a rank keeps at once">,
    Option<"microbatches", "microbatches", "int64_t", "0", "parts of the batch; 0: 1, or those of the file">,
    Option<"forwardOnly", "forward-only", "bool", "false",
           "of a step without gradients, as inference is: stages may compute nothing">,
    Option<"heldWhole", "held-whole", "double", "2", "bytes that a rank holds for each byte of a parameter">,
    Option<"heldSharded", "held-sharded", "double", "0", "and bytes that the ranks of shard-axes share">,
    ListOption<"shardAxes", "shard-axes", "std::string", "mesh axes over which held-sharded lies sharded">,
    ListOption<"parameterAxes", "parameter-axes", "std::string", "mesh axes over which parameters lie sharded, and all that is held of them">,
    Option<"recompute", "recompute", "std::string", "\"none\"",
           "what of each layer is computed again: none, selective or full">,
  ];
  let dependentDialects = ["::shoal::pipe::PipeDialect"];
}

def SplitPass : Pass<"pipe-split", "::mlir::ModuleOp"> {
  let summary = "the step's region over micro-batches as functions of stages";
  let description = [{
    Cuts the body of the region over micro-batches (L2, behind the partitioner) by `pipe.stage` and by pass: backward is
    what only gradients need, forward the rest, with metrics and new values of buffers; with a schedule that has I and
    W, backward is cut into what another stage waits for and what only gradients of parameters need. Each part becomes a
    function, whose arguments and results are all that it shares with others, and the body becomes their `pipe.call`s.

    A value that several stages read travels from stage to stage, forward or backward, through all between. Ops without
    a stage are computed in each stage that reads them, as early as that does; what only a sum over micro-batches reads,
    where the last of its operands is made: the forward pass goes up the stages, the backward pass down. A sum over
    micro-batches with terms of several stages, as the gradient of a parameter that two of them read, becomes one sum
    for each of them, and their sum follows the region.

    ```mlir
    %g:2 = dist.accumulate(%x) microbatches = 2 {
    ^bb0(%xm: tensor<4x8xf32>):
      %0 = nn.matmul %xm, %w0 {pipe.stage = 0 : i64} : ...
      %1 = nn.matmul %0, %w1 {pipe.stage = 1 : i64} : ...
      ...
    // becomes
    func.func private @step.stage0.forward(...) -> ...
    ...
      %0:2 = pipe.call forward stage 0 @step.stage0.forward(%xm, %w0) : ...
      %1:2 = pipe.call forward stage 1 @step.stage1.forward(%0#0, %w1) : ...
      %2:2 = pipe.call backward stage 1 @step.stage1.backward(%1#1, %w1) : ...
      %3 = pipe.call backward stage 0 @step.stage0.backward(%2#0, %0#1) : ...
      dist.yield %3, %2#1 : ...
    ```
  }];
  let dependentDialects = ["::shoal::pipe::PipeDialect"];
}

def UnrollPass : Pass<"pipe-unroll", "::mlir::ModuleOp"> {
  let summary = "the calls of stages in the order of the schedule";
  let description = [{
    Replaces the region of `pipe-split` by what each rank computes, sends and receives, in the order of the module's
    `pipe.schedule`: one straight line for all ranks, in which messages and collectives say at which positions they run
    (`dist.at`). Messages wait for no others (`dist.async`). Sums over micro-batches are added up where their stage is, as
    soon as there is a term, and reduced over other axes behind the last. What stands beside the region is put on the ranks
    that have what it reads, an argument where the step has its new value (in evaluation where training has, `pipe.ranks`);
    what follows the region, behind all that waits for no stage. A sum of terms that lie on all ranks, and a scalar, as the
    square of the global norm, is reduced over the axis; one of terms that lie on some, as the gradient of a tied
    parameter, goes from the last of these to the first, each adding its own, and back. Functions of stages and the
    schedule are gone behind it. Ops say which action they are part of (`exec.scope`), for the timeline of a run; what
    needs no stage, as a mask, is of none.

    ```mlir
    %0 = pipe.call forward stage 0 @step.stage0.forward(%xm, %w0) : ...
    %1 = pipe.call forward stage 1 @step.stage1.forward(%0, %w1) : ...
    // becomes, for each micro-batch,
    %0 = nn.matmul %x0, %w0 : ...
    dist.send {"pipe"} %0 to %c1 {dist.at = array<i64: 0>} : ...
    %1 = dist.recv {"pipe"} from %c0 {dist.at = array<i64: 1>} : ...
    %2 = nn.matmul %1, %w1 : ...
    ```
  }];
  let dependentDialects = ["::shoal::pipe::PipeDialect", "::shoal::exec::ExecDialect", "::mlir::arith::ArithDialect"];
}

def VerifyPass : Pass<"pipe-verify", "::mlir::ModuleOp"> {
  let summary = "the contract of a schedule";
  let description = [{
    Refuses every `pipe.schedule` that cannot run, before anything does:

    - each stage computes F, and B or I and W, of each micro-batch once, on the rank that has it, in this order;
      so every gradient is summed once, before the norm and the update; of a module without gradients F alone will do;
    - the order of actions has no cycle over the ranks;
    - every message has its other end, and those from one rank to another are received in the order in which they
      are sent;
    - ranks meet, even if a send ends only when it is received; messages in braces wait together;
    - no rank stashes more than its stated peak.

    A cycle is told action by action: both ranks send here before they receive.

    ```mlir
    pipe.schedule @crossed placement = loop microbatches = 2 chunks = 1 ranks [
      "F0 SF0>1 F1 SF1>1 RB0<1 B0 RB1<1 B1",
      "RF0<0 F0 B0 SB0>0 RF1<0 F1 B1 SB1>0"
    ]
    // error: the ranks wait for each other in a circle: rank 0: SF1>1 -> rank 1: SB0>0 -> rank 0: SF1>1
    ```
  }];
}

def SimulatePass : Pass<"pipe-simulate", "::mlir::ModuleOp"> {
  let summary = "what a schedule takes, by costs";
  let description = [{
    Prints, and changes nothing: when each rank of each `pipe.schedule` is busy and idle, and what it stashes.
    Durations are in any one unit. A rank's own idle time is that between its first start and its last end; the bubble
    is idle time as part of the makespan, from the first start of all ranks to the last end. Messages run beside
    computations, one at a time from rank to rank. Text goes to the standard error stream. `html` and `trace` write
    the timeline of a module's only schedule as a page and as Chrome trace.

    ```mlir
    pipe.schedule @step placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks ["F0 F1 B0 B1", "F0 B0 F1 B1"]
    // prints
    @step: 2 ranks, 2 micro-batches, 1 chunk per rank
      rank        busy    own idle        idle   bubble  peak stash   stash bytes
         0           6           3           3    33.3%           2             0
         1           6           0           3    33.3%           1             0
      makespan 9, bubble 33.3%, 4 messages of 0 bytes
    ```
  }];
  let options = !listconcat(costOptions, [
    Option<"stashBytes", "stash-bytes", "int64_t", "0", 
           "bytes that a stage keeps of a micro-batch from F until B or I">,
    Option<"weightStashBytes", "weight-stash-bytes", "int64_t", "0", "bytes that it keeps from I until W">,
    Option<"messageBytes", "message-bytes", "int64_t", "0", "bytes of a message">,
    Option<"unit", "unit", "std::string", "\"\"", "the unit of durations in files: s, ms, us or ns">,
    Option<"html", "html", "std::string", "\"\"", "write the timeline as a page">,
    Option<"trace", "trace", "std::string", "\"\"", "write the timeline as Chrome trace JSON">,
  ]);
}

#endif
