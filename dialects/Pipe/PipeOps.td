#ifndef SHOAL_PIPE_OPS
#define SHOAL_PIPE_OPS

include "PipeAttrs.td"
include "Interfaces/KnownAttributes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Pipe_ScheduleOp : Op<Pipe_Dialect, "schedule", [KnownAttributes, Symbol]> {
  let summary = "what each rank computes, sends and receives, in which order";
  let description = [{
    ```mlir
    pipe.schedule @step placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
      "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 U",
      "RF0<0 F0 B0 {SB0>0 RF1<0} F1 B1 SB1>0 U"
    ]
    ```
    A line per rank, in the order in which the rank works: `F0` is the forward pass of micro-batch 0, `B0` its whole
    backward pass, `I0` the part of it that makes the cotangents of the stage's input, `W0` the part that makes the
    gradients of its parameters; `F0.1` is of the rank's chunk 1 (`f0`, too), `F0@5` of stage 5. `SF0>1` sends rank 1
    what `F0` makes, `RF0<0` receives from rank 0 what `F0` reads; `SB0` and `RB0` are the same of cotangents.
    Messages in braces progress together. `N` is the exchange of the global gradient norm, `U` the optimizer's update.
    `peak` promises per rank how many micro-batches, times chunks, it stashes at most at once, from F until B or W.

    The op verifies that its lines can be read; whether they can run is what `pipe-verify` says. Made by
    `pipe-schedule`, from a generator or from a file that holds the same lines.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Pipe_PlacementAttr:$placement, I64Attr:$microbatches, I64Attr:$chunks,
                       OptionalAttr<DenseI64ArrayAttr>:$peak, StrArrayAttr:$ranks);
  let assemblyFormat = [{
    $sym_name `placement` `=` custom<PlacementName>($placement) `microbatches` `=` $microbatches `chunks` `=` $chunks
    (`peak` `=` $peak^)? `ranks` custom<RankLines>($ranks) attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Shape getShape();
    /// The lines as actions. They can be read, or the op would not have been verified.
    Schedule getSchedule();
    /// A schedule as an op at the builder's place.
    static ScheduleOp create(::mlir::OpBuilder &builder, ::mlir::Location loc, ::llvm::StringRef name,
                             const Schedule &schedule);
  }];
}

def Pipe_CallOp : Op<Pipe_Dialect, "call", [KnownAttributes, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one part of a stage, on one micro-batch";
  let description = [{
    ```mlir
    %out, %kept = pipe.call forward stage 0 @step.stage0.forward(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>)
        -> (tensor<4x8xf32>, tensor<4x8xf32>)
    ```
    Calls a function that holds what a stage computes in a pass: `forward`, `backward`, or that in two parts,
    `backward_input` and `backward_weight`. The function reads nothing else: its arguments are the micro-batch's
    inputs, parameters, what the stage has kept of its earlier parts, and what the stage before or behind it has made.
    Stands in the body of a `dist.accumulate`; what it calls has none. Made by `pipe-split`, consumed by `pipe-unroll`, which copies the
    functions in the order of the schedule, each to the mesh positions that have the stage.
  }];
  let arguments = (ins Pipe_PartAttr:$part, I64Attr:$stage, FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    custom<PartName>($part) `stage` $stage $callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
  }];
}

#endif
