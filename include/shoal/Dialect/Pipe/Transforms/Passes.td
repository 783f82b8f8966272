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
    beside it must be those of the file. Sends and receives
    that a schedule has not are derived from its dependencies, such that no rank waits in a circle even if every send
    waits for its receive. Without `messages` they are left out.

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
           "none, update, or norm: the update waits for the norm of all ranks' gradients; a file says it itself">,
    Option<"file", "file", "std::string", "\"\"", "read the schedule from this file instead">,
    Option<"messages", "messages", "bool", "true", "with sends and receives">,
    Option<"symbol", "symbol", "std::string", "\"schedule\"", "the name of the op">,
  ], costOptions);
  let dependentDialects = ["::shoal::pipe::PipeDialect"];
}

def VerifyPass : Pass<"pipe-verify", "::mlir::ModuleOp"> {
  let summary = "the contract of a schedule";
  let description = [{
    Refuses every `pipe.schedule` that cannot run, before anything does:

    - each stage computes F, and B or I and W, of each micro-batch once, on the rank that has it, in this order;
      so every gradient is summed once, before the norm and the update;
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
