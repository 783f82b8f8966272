#ifndef SHOAL_EXEC_OPS
#define SHOAL_EXEC_OPS

include "ExecAttrs.td"
include "Dist/DistAttrs.td"
include "Interfaces/KnownAttributes.td"
include "Interfaces/LoweringOpInterface.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def RowOpInterface : OpInterface<"RowOpInterface"> {
  let cppNamespace = "::shoal::exec";
  let description = [{
    A row of the rank program: what it is to the runtime, where it runs, what it signals, which buffers it touches, whom it
    meets. Passes and emission ask for these and never for the op.
  }];
  let methods = [
    InterfaceMethod<"What it is in the runtime's table.", "::shoal::rt::Opcode", "getOpcode", (ins), "", [{
      return ConcreteOp::kOpcode;
    }]>,
    InterfaceMethod<"The stream it runs on; 0 computes.", "int64_t", "getStreamIndex", (ins), "", [{
      return $_op.getStream();
    }]>,
    InterfaceMethod<"The token it signals, null when none.", "::mlir::Value", "getSignal", (ins), "", [{
      return $_op.getToken();
    }]>,
    InterfaceMethod<"Buffers it reads.", "void", "getReads", (ins "::llvm::SmallVectorImpl<::mlir::Value> &":$buffers)>,
    InterfaceMethod<"Buffers it writes.", "void", "getWrites", (ins "::llvm::SmallVectorImpl<::mlir::Value> &":$buffers)>,
    InterfaceMethod<"Whether only stream 0 may run it.", "bool", "computes", (ins), "", [{
      return ConcreteOp::kComputes;
    }]>,
    InterfaceMethod<"Whether it may read `read`, too, which lies on the very bytes of `written` that it writes.",
      "bool", "mayWorkInPlace", (ins "::mlir::Value":$written, "::mlir::Value":$read), "", [{ return false; }]>,
    InterfaceMethod<"Its numbers in the runtime's table.", "void", "getParams",
      (ins "::llvm::SmallVectorImpl<int64_t> &":$params), "", [{
        if (std::optional<int64_t> root = $_op.getRootPosition())
          params.push_back(*root);
      }]>,
    InterfaceMethod<"Whom it waits for.", "::shoal::exec::Meeting", "getMeeting", (ins), "", [{
      return ConcreteOp::kMeeting;
    }]>,
    InterfaceMethod<"The mesh axes along which it has a position or a group; null when it names none.",
      "::shoal::dist::AxesAttr", "getGroup", (ins), "", [{
        if constexpr (requires { $_op.getAxes(); })
          return $_op.getAxes();
        else
          return {};
      }]>,
    InterfaceMethod<"The position of its group that sends or receives for all.", "::std::optional<int64_t>", "getRootPosition",
      (ins), "", [{
        if constexpr (requires { $_op.getRoot(); })
          return $_op.getRoot();
        else
          return ::std::nullopt;
      }]>,
    InterfaceMethod<"How it combines values of several ranks.", "::std::optional<::shoal::dist::ReduceKindAttrEnum>", "getReduction",
      (ins), "", [{
        if constexpr (requires { { $_op.getKind() } -> ::std::same_as<::shoal::dist::ReduceKindAttrEnum>; })
          return $_op.getKind();
        else
          return ::std::nullopt;
      }]>,
    InterfaceMethod<"The messages that a row of `Meeting::Pairs` is made of.", "void", "getMessages",
      (ins "::shoal::dist::MeshAttr":$mesh, "::llvm::SmallVectorImpl<::shoal::exec::Message> &":$messages), "", [{ return; }]>,
  ];
}

def LibraryRowOpInterface : OpInterface<"LibraryRowOpInterface"> {
  let cppNamespace = "::shoal::exec";
  let description = [{
    A row that is one call of a library. Its operands are the call's buffers, inputs, outputs and workspace in this order, and
    its RowOpInterface params are the call's.
  }];
  let methods = [
    InterfaceMethod<"The function of the runtime.", "::shoal::rt::LibraryFunction", "getFunction">,
  ];
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, !listconcat([KnownAttributes], traits)>;

// L2: calls of outlined kernels.

def Exec_CallOp : Exec_Op<"call", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel on tensors";
  let description = "`exec.call @k_relu_0(%0) : (tensor<8xf32>) -> tensor<8xf32>`. Made by `exec-outline-kernels`, consumed by `exec-lower`.";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
}

def Exec_AddToOp : Exec_Op<"add_to", [Pure, AllTypesMatch<["sum", "term", "result"]>,
    DeclareOpInterfaceMethods<LoweringOpInterface, ["getLoweringKind"]>]> {
  let summary = "a product that is added to a running sum where that lies";
  let description = [{
    `exec.add_to %sum, %term : tensor<64x10xf32>`: `%term` is a library call's result that nobody else reads, and so is `%sum`. The call that makes
    the term adds to the buffer of `%sum`, which has the result: the term has no buffer. Made by `exec-outline-kernels` of sums over
    micro-batches, consumed by `exec-lower`.
  }];
  let arguments = (ins AnyStaticShapeTensor:$sum, AnyStaticShapeTensor:$term);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$sum `,` $term attr-dict `:` type($result)";
}

def Exec_TransferOp : Exec_Op<"transfer", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "a tensor in the other memory";
  let description = [{
    `exec.transfer %g to host : tensor<64x10xf32>`: from the device's memory to that of its host, or back. Made by `exec-insert-transfers` where what lies on the
    host and what does not meet, consumed by `exec-lower`, to which it is a copy between two buffers.
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Exec_MemoryAttr:$memory);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `to` custom<Keyword>($memory) attr-dict `:` type($result)";
}

// The program and its memory.

def Exec_ProgramOp : Exec_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "one step of one rank";
  let description = [{
    ```mlir
    exec.program @mlp train arena = 4096 rows = 32 bytes = <params = 1024, grads = 1024, optimizer = 0, activations = 512, workspace = 0> {
      %w = exec.arg param "w" at 0 init = zeros : !exec.buffer<16x16xf32>
      ...
    }
    ```
    `arena` bytes are allocated once in the device's memory, and `host` bytes in its host's where something lies there, as the fullest rank needs them, whose are `bytes`, too; `rows` is the size of a full global batch (0 without batched inputs). Made by `exec-lower`;
    consumed by the code generators' emission.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_ModeAttr:$mode, I64Attr:$arena, I64Attr:$rows, Exec_BytesAttr:$bytes,
                       DefaultValuedAttr<I64Attr, "0">:$host);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name custom<Keyword>($mode) `arena` `=` $arena (`host` `=` $host^)? `rows` `=` $rows `bytes` `=` $bytes attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Exec_ArgOp : Exec_Op<"arg", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "storage that lives from step to step, filled by the host";
  let description = [{
    `%w1 = exec.arg param "w1" at 0 global tensor<64x128xf32> sharding = <@mesh, [{}, {"tensor"} ]> init = kaiming_uniform(0.0, 0.0) : !exec.buffer<64x64xf32>`.
    `offset` in bytes from the start of the arena, or of the bytes on the host where the buffer lies there, a multiple of 64; only state of the optimizer and
    masters do. `global` (the buffer's own shape when absent) and `sharding` say which box of the logical tensor this
    rank holds. `batch` is the sample dimension of a batched input. `file` is the shape in files, the logical tensor's own when absent. `indices` says
    that the elements of an input are in [0, `indices`), or are `ignored`: the runtime refuses others. `bucket` says which tensors lie in it, one after
    another, cut where its sharding cuts them: these, not the bucket, are what files know by name. `master`: a parameter that only its own update and
    a cast of it read, counted as the optimizer's. `of`: the parameter that a state belongs to; of a bucket its members say it.
    With `exec.at` the argument is held at these mesh positions and nowhere else: the ones at which some row touches it.
  }];
  let arguments = (ins Exec_ArgKindAttr:$kind, StrAttr:$name, OptionalAttr<StrAttr>:$of, I64Attr:$offset, OptionalAttr<TypeAttrOf<AnyStaticShapeTensor>>:$global,
                       OptionalAttr<Dist_ShardingAttr>:$sharding, DefaultValuedAttr<I64Attr, "-1">:$batch_dim,
                       DefaultValuedAttr<Exec_InitAttr, "::shoal::exec::Init::none">:$init,
                       DefaultValuedAttr<F64Attr, "0.0">:$a, DefaultValuedAttr<F64Attr, "0.0">:$b,
                       OptionalAttr<DenseI64ArrayAttr>:$file, OptionalAttr<I64Attr>:$indices, OptionalAttr<I64Attr>:$ignored,
                       OptionalAttr<Dist_BucketAttr>:$bucket, UnitAttr:$master);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "custom<Keyword>($kind) (`master` $master^)? $name (`of` $of^)? `at` $offset (`global` $global^)? (`sharding` `=` $sharding^)? (`batch` `=` $batch_dim^)? (`init` `=` custom<Keyword>($init)^ `(` $a `,` $b `)`)? (`file` `=` $file^)? (`indices` `=` $indices^)? (`ignored` `=` $ignored^)? (`bucket` `=` $bucket^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = "StorageClass getStorageClass();\n::llvm::LogicalResult verifyContents();";
}

def Exec_BufferOp : Exec_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "storage within a step";
  let description = [{
    `%b = exec.buffer activation at 4096 : !exec.buffer<32x128xf32>`. In use from its first write to its last access; two buffers that are in use
    at once do not overlap.
  }];
  let arguments = (ins Exec_ClassAttr:$storage, I64Attr:$offset);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "custom<Keyword>($storage) `at` $offset attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Exec_ViewOp : Exec_Op<"view", [HasParent<"ProgramOp">]> {
  let summary = "a range of a buffer in another shape";
  let description = "`%v = exec.view %b[100] : !exec.buffer<150xf32> -> !exec.buffer<10x5xf32>`, from element 100 on.";
  let arguments = (ins Exec_BufferType:$source, I64Attr:$start);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "$source `[` $start `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

// Rows.

class Exec_Row<string mnemonic, string opcode, list<Trait> traits = [], list<string> more = [], bit computes = 0, string meeting = "None">
    : Exec_Op<mnemonic, !listconcat(traits, [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<RowOpInterface, more>])> {
  let results = (outs Optional<Exec_TokenType>:$token);
  let extraClassDeclaration = "static constexpr ::shoal::rt::Opcode kOpcode = ::shoal::rt::Opcode::" # opcode # ";\n"
                              "static constexpr ::shoal::exec::Meeting kMeeting = ::shoal::exec::Meeting::" # meeting # ";\n"
                              "static constexpr bool kComputes = " # !if(computes, "true", "false") # ";";
  dag rowArguments = (ins DefaultValuedAttr<I64Attr, "0">:$stream, OptionalAttr<StrAttr>:$name);
}
defvar Exec_RowTail = " (`stream` $stream^)? attr-dict `:` ";
defvar Exec_TokenTail = " (`->` type($token)^)?";

def Exec_LaunchOp : Exec_Row<"launch", "Launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>], ["mayWorkInPlace"], 1> {
  let summary = "run a kernel";
  let description = [{
    `exec.launch @k_sgd_update_0 ins(%w, %g, %lr : ...) inplace [0]`. A kernel that is `exec.host` runs on the host, in the order of the stream. The kernel's buffers are `ins`, `outs` and the workspace, in this order;
    `inplace` repeats the kernel's `exec.inplace`: which inputs are overwritten. No buffer that is written overlaps another one.
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$kernel, Variadic<Exec_BufferType>:$inputs, Variadic<Exec_BufferType>:$outputs,
                            Optional<Exec_BufferType>:$workspace, OptionalAttr<DenseI64ArrayAttr>:$inplace), rowArguments);
  let assemblyFormat = [{
    $kernel (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`inplace` $inplace^)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)? (`stream` $stream^)? attr-dict (`->` type($token)^)?
  }];
}

class Exec_LibraryRow<string mnemonic, list<Trait> traits = []>
    : Exec_Row<mnemonic, "Library", !listconcat(traits, [DeclareOpInterfaceMethods<LibraryRowOpInterface>]), ["getParams", "mayWorkInPlace"], 1>;

def Exec_GemmOp : Exec_LibraryRow<"gemm"> {
  let summary = "matrix product by a library";
  let description = [{
    `C[i] (m x n) = op(A[i]) (m x k) * op(B[i]) (k x n)`, plus the old `C[i]` when `accumulate`; row-major, `lda`, `ldb`, `ldc` elements between rows,
    `strides` elements between the matrices of a batch (cblas_sgemm, oneDNN matmul, cublasLtMatmul).
  }];
  let arguments = !con((ins Exec_BufferType:$a, Exec_BufferType:$b, Exec_BufferType:$c, I64Attr:$m, I64Attr:$n, I64Attr:$k,
                            I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc, DefaultValuedAttr<I64Attr, "1">:$batch, OptionalAttr<DenseI64ArrayAttr>:$strides,
                            UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$accumulate), rowArguments);
  let assemblyFormat = [{
    $a `,` $b `into` $c `m` `=` $m `n` `=` $n `k` `=` $k `lda` `=` $lda `ldb` `=` $ldb `ldc` `=` $ldc (`batch` `=` $batch^ `strides` `=` $strides)?
    (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? (`accumulate` $accumulate^)? (`stream` $stream^)? attr-dict
    `:` type($a) `,` type($b) `,` type($c) (`->` type($token)^)?
  }];
  let hasVerifier = 1;
}

def Exec_ScatterAddOp : Exec_LibraryRow<"scatter_add", [AttrSizedOperandSegments]> {
  let summary = "rows added up by their numbers";
  let description = [{
    `exec.scatter_add %ids, %values offset %o into %table : <12xi64>, <12x64xf32> offset <i64> into <100x64xf32>`: row r of the table becomes the sum of the rows of `values` whose number in `ids`, less the
    offset, is r, in their order; other numbers add nothing. Sums of bf16 are made in the workspace, as f32 (torch.index_add_ into zeros).
  }];
  let arguments = !con((ins Exec_BufferType:$ids, Exec_BufferType:$values, Optional<Exec_BufferType>:$offset, Exec_BufferType:$output,
                            Optional<Exec_BufferType>:$workspace), rowArguments);
  let assemblyFormat = [{
    $ids `,` $values (`offset` $offset^)? `into` $output (`workspace` $workspace^)? (`stream` $stream^)? attr-dict
    `:` type($ids) `,` type($values) (`offset` type($offset)^)? `into` type($output) (`workspace` type($workspace)^)? (`->` type($token)^)?
  }];
  let hasVerifier = 1;
}

def Exec_CopyOp : Exec_Row<"copy", "Copy"> {
  let summary = "copy a buffer; equal bytes, no overlap";
  let description = "The one row whose buffers may lie in two memories (cudaMemcpyAsync): what the host's kernels read and make comes and goes by it.";
  let arguments = !con((ins Exec_BufferType:$input, Exec_BufferType:$output), rowArguments);
  let assemblyFormat = !strconcat("$input `to` $output", Exec_RowTail, "type($input) `,` type($output)", Exec_TokenTail);
  let hasVerifier = 1;
}

def Exec_AxisIndexOp : Exec_Row<"axis_index", "AxisIndex", [DeclareOpInterfaceMethods<SymbolUserOpInterface>], ["getParams"], 1> {
  let summary = "writes this rank's linear position along axes, times a constant, as i64";
  let arguments = !con((ins Dist_AxesAttr:$axes, I64Attr:$scale, Exec_BufferType:$output), rowArguments);
  let assemblyFormat = !strconcat("$axes `*` $scale `to` $output", Exec_RowTail, "type($output)", Exec_TokenTail);
  let hasVerifier = 1;
}

// Collectives act on contiguous equal chunks: chunk i belongs to position i of the group.
class Exec_Collective<string mnemonic, string opcode, dag extra, string head, list<string> more = [], string meeting = "Group">
    : Exec_Row<mnemonic, opcode, [DeclareOpInterfaceMethods<SymbolUserOpInterface>], more, 0, meeting> {
  let arguments = !con((ins Dist_AxesAttr:$axes), extra, (ins Exec_BufferType:$input, Exec_BufferType:$output, OptionalAttr<StrAttr>:$reason), rowArguments);
  let assemblyFormat = !strconcat("$axes ", head, " $input `to` $output", Exec_RowTail, "type($input) `,` type($output)", Exec_TokenTail);
}
def Exec_AllReduceOp : Exec_Collective<"all_reduce", "AllReduce", (ins Dist_ReduceKindAttr:$kind), "custom<Keyword>($kind)", ["mayWorkInPlace"]> {
  let summary = "combine over axes, the result on every rank; input and output may be the same buffer";
}
def Exec_AllGatherOp : Exec_Collective<"all_gather", "AllGather", (ins), ""> {
  let summary = "the chunks of all ranks, in group order";
}
def Exec_ReduceScatterOp : Exec_Collective<"reduce_scatter", "ReduceScatter", (ins Dist_ReduceKindAttr:$kind), "custom<Keyword>($kind)"> {
  let summary = "combine over axes, each rank keeps its chunk";
}
def Exec_AllToAllOp : Exec_Collective<"all_to_all", "AllToAll", (ins), ""> {
  let summary = "chunk i goes to position i";
}
def Exec_BroadcastOp : Exec_Collective<"broadcast", "Broadcast", (ins I64Attr:$root), "`root` `=` $root", ["mayWorkInPlace"]> {
  let summary = "the root's buffer on every rank";
}
def Exec_ScatterOp : Exec_Collective<"scatter", "Scatter", (ins I64Attr:$root), "`root` `=` $root"> {
  let summary = "one chunk of the root's buffer per rank";
}
def Exec_GatherOp : Exec_Collective<"gather", "Gather", (ins I64Attr:$root), "`root` `=` $root"> {
  let summary = "the chunks of all ranks on the root, zeros elsewhere";
}
def Exec_PermuteOp : Exec_Collective<"permute", "Permute", (ins DenseI64ArrayAttr:$sources, DenseI64ArrayAttr:$targets), "`from` $sources `to` $targets", ["getMessages"], "Pairs"> {
  let summary = "each pair's target receives its source's buffer; zeros where nothing arrives";
}

def Exec_PointToPointOp : Exec_Row<"point_to_point", "PointToPoint", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>], ["getMessages"], 0, "Pairs"> {
  let summary = "sends and receives that progress together";
  let description = [{
    `exec.point_to_point sends(%a : ...) to [array<i64: 1, -1>] recvs(%b : ...) from [array<i64: -1, 0>]`: per transfer and per mesh position the mesh position
    of the other end, -1 where that position takes no part (ncclGroupStart .. ncclGroupEnd; MPI_Isend, MPI_Irecv, MPI_Waitall).
  }];
  let arguments = !con((ins Variadic<Exec_BufferType>:$sends, Variadic<Exec_BufferType>:$recvs, ArrayAttr:$targets, ArrayAttr:$sources,
                            OptionalAttr<StrAttr>:$reason), rowArguments);
  let assemblyFormat = [{
    (`sends` `(` $sends^ `:` type($sends) `)`)? `to` $targets (`recvs` `(` $recvs^ `:` type($recvs) `)`)? `from` $sources
    (`stream` $stream^)? attr-dict (`->` type($token)^)?
  }];
}

def Exec_BarrierOp : Exec_Row<"barrier", "Barrier", [DeclareOpInterfaceMethods<SymbolUserOpInterface>], [], 0, "Group"> {
  let summary = "wait for every rank of the group";
  let arguments = !con((ins Dist_AxesAttr:$axes, OptionalAttr<StrAttr>:$reason), rowArguments);
  let assemblyFormat = "$axes (`stream` $stream^)? attr-dict (`->` type($token)^)?";
}

def Exec_WaitOp : Exec_Op<"wait", [HasParent<"ProgramOp">]> {
  let summary = "the stream goes on when the token is signalled";
  let description = "`exec.wait %t stream 1` (cudaStreamWaitEvent).";
  let arguments = (ins Exec_TokenType:$token, DefaultValuedAttr<I64Attr, "0">:$stream);
  let assemblyFormat = "$token (`stream` $stream^)? attr-dict";
}

def Exec_ProbeOp : Exec_Row<"probe", "Probe", [], [], 1> {
  let summary = "the host may read the buffer here";
  let description = [{
    `exec.probe loss "loss" %l : !exec.buffer<f32>`. The value is complete; it does not stay so any longer than its other readers need.
    `global`, `sharding`, `batch` and `bucket` as in `exec.arg`.
  }];
  let arguments = !con((ins Exec_ResultKindAttr:$kind, StrAttr:$result_name, Exec_BufferType:$input, OptionalAttr<TypeAttrOf<AnyStaticShapeTensor>>:$global,
                            OptionalAttr<Dist_ShardingAttr>:$sharding, DefaultValuedAttr<I64Attr, "-1">:$batch_dim, OptionalAttr<Dist_BucketAttr>:$bucket), rowArguments);
  let assemblyFormat = !strconcat("custom<Keyword>($kind) $result_name $input (`global` $global^)? (`sharding` `=` $sharding^)? (`batch` `=` $batch_dim^)? (`bucket` `=` $bucket^)?", Exec_RowTail, "type($input)", Exec_TokenTail);
  let hasVerifier = 1;
}

include "ExecAttentionOps.td"

#endif
