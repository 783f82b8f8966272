#ifndef SHOAL_DIST_PASSES
#define SHOAL_DIST_PASSES

include "mlir/Pass/PassBase.td"

// Annotation.

def NumberPass : Pass<"dist-number", "::mlir::ModuleOp"> {
  let summary = "numbers the values of the global program";
  let description = [{
    Gives every `nn` and `dist` op with results a `dist.id`, in program order, so that the local program can say which global value each
    of its values is a piece of (`dist.globals`), and a difference can be named. It is the number of the first result; the others follow.

    ```mlir
    %0 = nn.relu %x : tensor<8xf32>
    // becomes
    %0 = nn.relu %x {dist.id = 0 : i64} : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def DataParallelPass : Pass<"dist-data-parallel", "::mlir::ModuleOp"> {
  let summary = "data parallelism as annotations";
  let description = [{
    Shards dimension 0 of every batched input over the batch axes; the rest follows by `dist-propagate`: gradients become partial sums, whose
    reduction is the all-reduce of DDP. Annotations by hand win; one that uses the axis on another dimension of a batched input contradicts the
    strategy and is an error.

    ```mlir
    func.func @f(%x: tensor<32x64xf32> {nn.input = "x"}, %w: tensor<64x10xf32> {nn.param = ...})
    // becomes
    func.func @f(%x: tensor<32x64xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {} ]>},
                 %w: tensor<64x10xf32> {nn.param = ...})
    ```
  }];
  let options = [
    ListOption<"axes", "axes", "std::string", "mesh axes over which the batch is split, major to minor; data when none is named">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def ZeroPass : Pass<"dist-zero", "::mlir::ModuleOp"> {
  let summary = "ZeRO as annotations: optimizer state, gradients and parameters sharded by element";
  let description = [{
    Says of the step which tensors lie sharded over the batch axes, element by element (`dist.flat`), and nothing else; `dist-pack` lays those that
    are updated alike in buckets, and the partitioner makes the collectives. Stage 1: the optimizer's state, and the gradients as they leave the step.
    Stage 2: gradients are reduced to shards in each micro-batch (`per_use`). Stage 3: parameters, too, which are put together for each use. A parameter
    that the step reads through a cast only (`nn.master`) lies sharded from stage 1 on, and what is gathered is its cast. Where a hand has sharded a parameter over one of the
    axes, it and what belongs to it are left alone, with a remark (Rajbhandari et al. 2020).

    ```mlir
    func.func @step(%w: tensor<4x10xf32> {nn.param = #nn.param<"w", ...>}, %m: tensor<4x10xf32> {nn.state = #nn.state<"w.m", of = "w", ...>})
        -> (tensor<4x10xf32> {nn.grad = "w"}, ...)
    // becomes, in stage 1
    func.func @step(%w: tensor<4x10xf32> {nn.param = #nn.param<"w", ...>},
                    %m: tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}>, nn.state = #nn.state<"w.m", of = "w", ...>})
        -> (tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}>, nn.grad = "w"}, ...)
    ```
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "1", "1, 2 or 3">,
    ListOption<"axes", "axes", "std::string", "mesh axes that hold the shards; data when none is named">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def TensorParallelPass : Pass<"dist-tensor-parallel", "::mlir::ModuleOp"> {
  let summary = "tensor parallelism as annotations";
  let description = [{
    Shards parameters over the axis. Which of their dimensions is read off the graph through the sharding rules: one that a product with a parameter
    makes and another product with a parameter sums over (columns and rows: the hidden dimension of an MLP, the heads of attention), with nothing
    between them that needs it whole; the rows of an embedding table; the vocabulary of logits whose loss may be sharded over its classes. Values
    follow by `dist-propagate`: the forward pass reduces once behind the rows, the backward pass once behind the columns.

    Where a product makes several such dimensions (key/value heads and groups of query heads) the first takes the axis if it is at least as large; else
    it takes the part that divides it, and the next one takes the rest: the axis is split (`dist-split-axis`).

    Annotations by hand win. One that keeps a dimension from the axis also keeps the strategy from all that belongs to that dimension; a remark names
    both places.

    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %w1: tensor<4x6xf32> {nn.param = ...}, %w2: tensor<6x4xf32> {nn.param = ...}) ... {
      %0 = nn.matmul %x, %w1 : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      %1 = nn.relu %0 : tensor<8x6xf32>
      %2 = nn.matmul %1, %w2 : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    // becomes
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"},
                 %w1: tensor<4x6xf32> {nn.param = ..., dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"} ]>},
                 %w2: tensor<6x4xf32> {nn.param = ..., dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {} ]>}) ... {
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "\"tensor\"", "mesh axis over which parameters are sharded">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def ContextParallelPass : Pass<"dist-context-parallel", "::mlir::ModuleOp"> {
  let summary = "context parallelism as annotations: the sequence over mesh axes";
  let description = [{
    The sequence is every dimension that is one with the queries or the keys of `nn.attention`. Inputs that have it lie sharded along it over
    `context`, or, where none has it as a dimension of its own, what a reshape splits off; and with them all that is computed of tokens.
    Attention alone looks at other tokens. What it does about that is its `mode`:

    - `ring`: nothing else is annotated. Keys and values stay where they are, and `dist-partition` lets them pass from device to device.
    - `zigzag`: the ring, over tokens stored in an order in which shards have equal work under a causal mask (`nn.zigzag`). Inputs are brought into it,
      results out of it; rope, dropout and masks know the original positions.
    - `allgather`: keys and values are gathered for every attention, their gradients reduced and scattered; again for the backward pass, unless
      `keep-gathered` is on.
    - `ulysses`: queries, keys, values and what attention makes of them lie by heads instead of by tokens around it (Jacobs et al. 2023). Where
      key/value heads are fewer than devices, the axis is split, and query heads take what these leave of it.
    - `hybrid`: the sequence over `context` and `ulysses`; heads over `ulysses` around attention, which is a ring over `context`. A
      remark tells of lengths at which tokens move over `context` for that, too.

    ```mlir
    func.func @f(%x: tensor<2x8x4xf32> {nn.input = "x"}, ...) {
      %o, %lse = nn.attention %q, %k, %v causal scale = 0.5 : (tensor<2x8x1x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>) -> tensor<2x8x1x1x4xf32>
    // becomes, by allgather
    func.func @f(%x: tensor<2x8x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{?}, {"context"}, {?} ]>}, ...) {
      %a = dist.reshard %k <@mesh, [{?}, {}, {?}, {?} ]> {reason = "all keys and values for nn.attention"} : tensor<2x8x1x4xf32>
      %b = dist.reshard %v <@mesh, [{?}, {}, {?}, {?} ]> {reason = "all keys and values for nn.attention"} : tensor<2x8x1x4xf32>
      %o, %lse = nn.attention %q, %a, %b causal scale = 0.5 : (tensor<2x8x1x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>) -> tensor<2x8x1x1x4xf32>
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"ring\"", "ring | zigzag | ulysses | allgather | hybrid">,
    Option<"keepGathered", "keep-gathered", "bool", "false", "of allgather: keep gathered keys and values for the backward pass">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect"];
}

def SequenceParallelPass : Pass<"dist-sequence-parallel", "::mlir::ModuleOp"> {
  let summary = "sequence parallelism as annotations";
  let description = [{
    After `dist-tensor-parallel`, or shardings by hand of the same kind. The residual stream (norms, dropout, sums: every value of batch, sequence
    and hidden size that holds no sharded head, feature or vocabulary) is sharded by sequence over the same axis. Products on sharded dimensions need
    the whole sequence: a `dist.reshard` gathers what they read of the stream, another one scatters what they add to it, in both passes. Of what the
    forward pass gathered only the shard is kept; the backward pass fetches it again (`dist.refetch`), unless `keep-gathered` is on.

    ```mlir
    %1 = nn.rms_norm %0, %g eps = 1.0e-5 : tensor<2x8x4xf32>, tensor<4xf32>
    %2 = nn.tensordot %1, %w1 axes = 1 : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
    %3 = nn.tensordot %2, %w2 axes = 1 : (tensor<2x8x6xf32>, tensor<6x4xf32>) -> tensor<2x8x4xf32>
    %4 = nn.add %0, %3 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    // becomes, where w1 is [{}, {"tensor"} ] and w2 is [{"tensor"}, {} ]
    %1 = nn.rms_norm %0, %g eps = 1.0e-5 {dist.shardings = [#dist.sharding<@mesh, [{?}, {"tensor"}, {?} ]>, ...]} : tensor<2x8x4xf32>, tensor<4xf32>
    %a = dist.reshard %1 <@mesh, [{?}, {}, {?} ]> {reason = "..."} : tensor<2x8x4xf32>
    %2 = nn.tensordot %a, %w1 axes = 1 : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
    %3 = nn.tensordot %2, %w2 axes = 1 : (tensor<2x8x6xf32>, tensor<6x4xf32>) -> tensor<2x8x4xf32>
    %b = dist.reshard %3 <@mesh, [{?}, {"tensor"}, {?} ]> {reason = "..."} : tensor<2x8x4xf32>
    %4 = nn.add %0, %b : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "\"tensor\"", "mesh axis over which the sequence is sharded">,
    Option<"keepGathered", "keep-gathered", "bool", "false", "keep gathered values for the backward pass">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def SplitAxisPass : Pass<"dist-split-axis", "::mlir::ModuleOp"> {
  let summary = "one mesh axis as several";
  let description = [{
    A dimension takes an axis whole or not at all; two dimensions share one when it is split. Ranks are row-major over the axes, so nothing moves. All
    that names the axis names its parts, `"tensor.0"` and so on, major to minor. Reports name the origin where both parts take part.

    ```mlir
    dist.mesh @mesh <["tensor"=4]>
    #dist.sharding<@mesh, [{}, {"tensor"} ]>
    // becomes, with axis=tensor factors=2,2
    dist.mesh @mesh <["tensor.0"=2, "tensor.1"=2]>
    #dist.sharding<@mesh, [{}, {"tensor.0", "tensor.1"} ]>
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "\"tensor\"", "mesh axis to split">,
    ListOption<"factors", "factors", "int64_t", "sizes of the parts, major to minor; they multiply to the axis's size">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def MicrobatchPass : Pass<"dist-microbatch", "::mlir::ModuleOp"> {
  let summary = "the batch in parts, one after the other";
  let description = [{
    Activations of a large batch need not be held at once: what depends on rows becomes the body of one `dist.accumulate`, and gradients and losses its
    results. Inputs `[B, ...]` become `[count, b, ...]` with b = ceil(B / count) and say so (`nn.batch_rows = B`); files stay as they are, and row i of
    micro-batch m is row m * b + i of the batch. Rows past the last real one are masked as those of a short batch are, so `count` need not divide B.
    A sharding of the rows moves to dimension 1: a device has its rows of every micro-batch, and none is exchanged.

    The pass finds by sharding rules what has rows, what is a sum over them, and what is linear in sums: that runs once per micro-batch, by the
    ops' `localize`, for which a micro-batch is a shard in time. What has neither is made before, also sums that need inputs alone and that
    micro-batches read whole (the targets that count). What reads sums otherwise (clipping, the optimizer) stands behind. A model that reads a
    sum over the batch beside its rows, as batch_norm does in training, is refused: no micro-batch knows it before all have run.

    A pipeline has its region also where `count` is 1: inputs stay as they are, sums over the batch are whole in it, and rows can be returned.

    It stands behind the strategies, which see one block and rows in dimension 0, and before `dist-close-arguments`. Evaluation is split as its training.

    Before, with `count=2`:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x3xf32> {nn.param = #nn.param<"w", init = zeros>})
        -> (tensor<4x3xf32> {nn.output = "g"}) {
      %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
      %1 = nn.matmul %x, %0 {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
      return %1 : tensor<4x3xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<2x4x4xf32> {nn.batch_rows = 8, nn.input = "x"}, %w: tensor<4x3xf32> {nn.param = #nn.param<"w", init = zeros>})
        -> (tensor<4x3xf32> {nn.output = "g"}) {
      %m = nn.iota dim = 0 : tensor<2xi64>
      %0 = dist.accumulate(%x, %m) microbatches = 2 {
      ^bb0(%xm: tensor<1x4x4xf32>, %i: tensor<1xi64>):
        %1 = nn.reshape %xm : tensor<1x4x4xf32> -> tensor<4x4xf32>
        %2 = nn.matmul %1, %w : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
        %3 = nn.matmul %1, %2 {transpose_a} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
        dist.yield %3 : tensor<4x3xf32>
      } : (tensor<2x4x4xf32>, tensor<2xi64>) -> tensor<4x3xf32>
      return %0 : tensor<4x3xf32>
    }
    ```
  }];
  let options = [Option<"count", "count", "int64_t", "1", "micro-batches of a batch">];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect"];
}

def CloseArgumentsPass : Pass<"dist-close-arguments", "::mlir::ModuleOp"> {
  let summary = "arguments that no strategy sharded are whole";
  let description = [{
    The last strategy. An argument of a model without an annotation would be open, and propagation would lay it as its readers wish: an unsharded
    weight is a decision, not a gap. State of the optimizer lies as its parameter. Annotations, also open ones, stay as they are.

    ```mlir
    func.func @f(%w: tensor<64x10xf32> {nn.param = #nn.param<"w", ...>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"} ]>},
                 %b: tensor<10xf32> {nn.param = ...}, %m: tensor<64x10xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>})
    // becomes
    func.func @f(%w: ..., %b: tensor<10xf32> {nn.param = ..., dist.sharding = #dist.sharding<@mesh, [{} ]>},
                 %m: tensor<64x10xf32> {nn.state = ..., dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"} ]>})
    ```
  }];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def OffloadPass : Pass<"dist-offload", "::mlir::ModuleOp"> {
  let summary = "state of the optimizer and masters lie in the host's memory";
  let description = [{
    `--offload optimizer` (ZeRO-Offload; Ren et al. 2021). Moments and masters are 12 of the 16 bytes of a parameter in mixed precision, and are touched once a
    step. The pass says so of the arguments of one device's program, packed or not, and nothing else: a placement. Where the update runs, and what is copied for it, follows from that when kernels are outlined
    (`exec-insert-transfers`). A program that updates parameters without state or masters is refused: nothing of it could be offloaded.

    ```mlir
    func.func @f(%m: tensor<4x2xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>})
    // becomes
    func.func @f(%m: tensor<4x2xf32> {dist.memory = "host", nn.state = #nn.state<"w.m", of = "w", init = 0.0>})
    ```
  }];
}

def PropagatePass : Pass<"dist-propagate", "::mlir::ModuleOp"> {
  let summary = "a closed sharding on every value, from a few annotations";
  let description = [{
    Shardings of few values say what the others should be. Dimensions are projected to the factors of each op's sharding rule, factors take the longest
    axes on which the tensors agree, and open dimensions are extended by them: forward until nothing changes, then backward, to a
    fixpoint. Priorities p0, p1, ... take part one after another. Then open dimensions close. Values without an annotation start open; annotated
    ones say themselves what is open (`?`).

    **Conflicts.** Where tensors of an op want a factor sharded differently, or two factors the same axis, the wish of the largest operand
    spreads; ties go to the first operand; results come last. What then does not fit is a remark at the op, with a note at the value, and will be
    resharded: `dist-partition` moves what costs the fewest bytes.

    **Partial values.** A sharded reduction factor makes results `unreduced`. They may stay so through ops that are linear in them. Reductions cut the ways
    from there to the users that need values reduced: of all such cuts the one that sends the fewest bytes, the last of equal ones, with partial operands of
    products left so. What is reduced is reduced for all its users. An annotation by hand states
    the unreduced axes exactly: without any, the value is reduced where it is made. Function results are always reduced.

    An op without `ShardingRuleOpInterface` that meets a sharded operand is an error.

    ```mlir
    func.func @f(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"} ]>}, %w: tensor<4x2xf32>) -> tensor<8x2xf32> {
      %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    // becomes
    func.func @f(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"} ]>},
                 %w: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {} ]>})
        -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {} ]>}) {
      %0 = nn.matmul %x, %w {dist.shardings = [#dist.sharding<@mesh, [{}, {} ], unreduced=sum{"x"}>]} : ...
    ```
  }];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

// Partition and collectives.

def PartitionPass : Pass<"dist-partition", "::mlir::ModuleOp"> {
  let summary = "one device's program from annotations";
  let description = [{
    The one code generator of every strategy. Each op's factors are sharded as the annotations of its operands and results say; where they disagree
    the way that sends the fewest bytes is taken. Values are brought into the layouts that ops need by the cheapest collectives (a search over
    layouts), once per value and layout. Padding that a reduction would see is masked, ops that cannot be sharded as they are (softmax over a sharded
    dimension) are decomposed, and values whose result is annotated whole are reduced, straight into a sharded layout where that is cheaper.

    Only the named axes are partitioned; the others stay annotated for a later run (`dist-pack` stands between). A dimension that both kinds of
    axes shard must have the ones of this run major. A dimension that does not divide must be partitioned in one run.

    Micro-batches (`dist.accumulate`) are the rows that L1 says. A device holds a part of each, so with more than one micro-batch its
    rows are exchanged first; sums over micro-batches stay partial through the region and are reduced once.

    A function that holds collectives, but no sharding and no `dist.global`, is written by hand at L2: one device's program already. It is left as
    it is, and a remark says so.

    ```mlir
    func.func @f(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"} ]>},
                 %w: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {} ]>}) -> tensor<8x2xf32> {
      %0 = nn.matmul %x, %w {dist.shardings = [#dist.sharding<@mesh, [{}, {} ], unreduced=sum{"x"}>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
      return %0 : tensor<8x2xf32>
    // becomes, with "x"=2
    func.func @f(%x: tensor<8x2xf32>, %w: tensor<2x2xf32>) -> tensor<8x2xf32> {
      %0 = nn.matmul %x, %w : (tensor<8x2xf32>, tensor<2x2xf32>) -> tensor<8x2xf32>
      %1 = dist.all_reduce {"x"} sum %0 {reason = "result 0: [{}, {} ] sum{\"x\"} -> [{}, {} ]"} : tensor<8x2xf32>
      return %1 : tensor<8x2xf32>
    ```
  }];
  let options = [
    ListOption<"axes", "axes", "std::string", "mesh axes to partition; all when none is named">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect"];
}

def PackPass : Pass<"dist-pack", "::mlir::ModuleOp"> {
  let summary = "gradients become flat buckets that are reduced as one";
  let description = [{
    A collective per gradient pays a latency each; one for all cannot start before the last gradient. So the gradients (`nn.grad` results and the
    gradients that updates read) that are partial over the named axes are laid one after another, per element type and unreduced axes, in the order
    in which they are ready, and cut into ceil(bytes / bucket) ranges of nearly equal size; a range may cut a tensor. Each
    bucket is one `dist.reshard`, which the partition of those axes turns into a reduction; what is partial over other axes, too, stays so over those.
    Over `joint` axes, which are partitioned in an earlier run, gradients of a later run's buckets are not packed: that run's buckets are cut as if the
    reductions of single gradients were not there, and `dist-optimize-collectives` moves these behind them.
    Where a gradient is the gather of a shard, the shard is packed, and gathered when it is reduced. Other partial values, such as the loss, are reduced on their own.

    What `dist.flat` wants sharded by element (`dist-zero`) goes further. From each optimizer update the pass follows the gradient up to where the backward
    pass makes it, and down to the sum of squares of the global norm; chains that are alike (op, attributes, scalars; element types; what lies flat; under
    `per_use` also the layer, and whether backward reads the parameter) become one chain on buckets: 1-D arguments and results with `dist.bucket`, whose
    members keep their names. They are cut as gradients are, into ceil(bytes / bucket) ranges, bytes being those of the gradient as it is reduced; so a
    tensor may lie in several buckets (`#dist.member<"w1", tensor<10x10xf32>[0:56]>`). Boundaries are multiples of the devices, and zeros pad the last
    bucket to one. Its gradient is packed and resharded to shards (a reduce-scatter), the update runs on shards, and what is to be whole is
    resharded behind it (an all-gather). A parameter that devices have whole is in one argument for all buckets, which is packed of what they gather; buckets
    of a sharded one are gathered side by side, so that it is whole without a copy. Of a sharded parameter every cluster of readers (one layer, one part of the step) reads a reshard of its own, marked
    `dist.fetch`, which starts a layer ahead, or with `overlap` off in front of its first reader. What cannot be bundled stays whole, with a remark. An
    evaluation step has the buckets of its training step (`dist.buckets`).

    ```mlir
    %g1 = nn.matmul ... {dist.shardings = [#dist.sharding<@mesh, [{}, {} ], unreduced=sum{"data"}>]} : ... -> tensor<10x10xf32>
    %g2 = nn.reduce sum ... {dist.shardings = [#dist.sharding<@mesh, [{} ], unreduced=sum{"data"}>]} : ... -> tensor<10xf32>
    return %g1, %g2
    // becomes
    %b = dist.pack %g1[0:100], %g2[0:10] group 0 at 0 : (tensor<10x10xf32>, tensor<10xf32>) -> tensor<110xf32>
    %r = dist.reshard %b <@mesh, [{} ]> {reason = "gradients of w1, b1 are partial sums over {\"data\"}"} : tensor<110xf32>
    %u1 = dist.unpack %r[0:100] : (tensor<110xf32>) -> tensor<10x10xf32>
    %u2 = dist.unpack %r[100:110] : (tensor<110xf32>) -> tensor<10xf32>
    return %u1, %u2

    // With `dist.flat = #dist.flat<{"data"}>` on their states and gradients, over 4 devices (types of the parts left out):
    func.func @step(..., %w1 {nn.param = #nn.param<"w1", ...>}, %b1 {nn.param = #nn.param<"b1", ...>},
                    %v1 {nn.state = #nn.state<"w1.velocity", ...>, dist.flat = ...}, %v2 {nn.state = #nn.state<"b1.velocity", ...>, dist.flat = ...})
    %n1:2 = nn.momentum_update %w1, %g1, %v1 lr = %lr ...
    %n2:2 = nn.momentum_update %b1, %g2, %v2 lr = %lr ...
    // becomes
    func.func @step(..., %p: tensor<112xf32> {nn.param = #nn.param<"bucket.0", ...>, dist.bucket = #dist.bucket<[<#nn.param<"w1", ...>, tensor<10x10xf32>>, ...]>},
                    %v: tensor<112xf32> {nn.state = #nn.state<"bucket.0.velocity", ...>, dist.bucket = ..., dist.sharding = #dist.sharding<@mesh, [{"data"} ]>})
    %w1 = dist.unpack %p[0:100] : (tensor<112xf32>) -> tensor<10x10xf32>
    %zero = nn.constant dense<0.0> : tensor<2xf32>
    %b = dist.pack %g1[0:100], %g2[0:10], %zero[0:2] group 0 at 0 : ... -> tensor<112xf32>
    %g = dist.reshard %b <@mesh, [{"data"} ]> : tensor<112xf32>
    %n:2 = nn.momentum_update %p, %g, %v lr = %lr {dist.shardings = [[{"data"} ], [{"data"} ]], ...}
    %new = dist.reshard %n#0 <@mesh, [{} ]> : tensor<112xf32>
    ```
  }];
  let options = [
    Option<"bucketMb", "bucket-mb", "double", "25", "bytes of the gradient that a bucket holds, in units of 2^20">,
    ListOption<"axes", "axes", "std::string", "axes whose partial gradients are packed; data when none is named">,
    ListOption<"joint", "joint", "std::string", "axes over which gradients that a later run packs are reduced with that run's axes">,
    Option<"overlap", "overlap", "bool", "true", "start to gather parameters a layer ahead of their first reader">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::exec::ExecDialect"];
}

def OptimizeCollectivesPass : Pass<"dist-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "fewer and earlier collectives";
  let description = [{
    Equal collectives become one. A reduction whose users all slice it is a reduce-scatter. A sum of reductions is the reduction of a sum, whatever is added between them. An
    all-reduce that a micro-batch region yields moves out of it, and is done once. Over the axes of `joint`, a bucket of sums is the sum of buckets, and
    a reduction of a sum is one over all axes; where it scatters, the shard is summed over the joint axes. Then, unless `overlap` is off, every
    collective moves up to where its operands are ready, so that it runs beside the computation that follows; its users stay where they are, and so
    does a `dist.permute_start`, which says itself when it starts.

    ```mlir
    %0 = dist.all_reduce {"x"} sum %a {reason = "..."} : tensor<8xf32>
    %1 = dist.all_slice {"x"} dim = 0 %0 {reason = "..."} : tensor<8xf32> -> tensor<4xf32>
    // becomes
    %1 = dist.reduce_scatter {"x"} sum dim = 0 %a {reason = "..."} : tensor<8xf32> -> tensor<4xf32>
    ```
  }];
  let options = [
    Option<"overlap", "overlap", "bool", "true", "start collectives as early as their operands are ready">,
    ListOption<"joint", "joint", "std::string", "axes that were partitioned first and are reduced over together with others">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def FoldControlFlowPass : Pass<"dist-fold-control-flow", "::mlir::ModuleOp"> {
  let summary = "control flow that depends on the rank as one straight line";
  let description = [{
    A rank program has no branches, so that its rows are known before it runs. In a local program written by hand, conditions and bounds of `scf.if`,
    `scf.for` and `scf.index_switch` are made of constants, `dist.axis_index` and ops that fold, so every position's way is known: loops unroll, both
    branches stay, and communication says which positions run it (`dist.at`). What has no effect runs everywhere. A value
    that comes from different branches, or from loops of different length, is a `dist.select`. Scalars become `dist.position_constant` where a
    peer or a tensor (`tensor.from_elements`) is made of them.

    Where positions of one group take different branches, equal collectives directly in these branches are one, which they meet at.
    A collective whose group is not complete is an error, and so is a program that unrolls to more than `max-ops` ops. Sends and receives are matched
    by `exec-verify`.

    ```mlir
    %i = dist.axis_index {"x"} * 1 : index
    %first = arith.cmpi eq, %i, %zero : index
    %0 = scf.if %first -> tensor<4xf32> {
      dist.send {"x"} %a to %one : tensor<4xf32>
      scf.yield %a : tensor<4xf32>
    } else {
      %1 = dist.recv {"x"} from %zero : tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    // becomes, with "x"=2
    dist.send {"x"} %a to %one {dist.at = array<i64: 0>} : tensor<4xf32>
    %1 = dist.recv {"x"} from %zero {dist.at = array<i64: 1>} : tensor<4xf32>
    %0 = dist.select [0, 1] %a, %1 : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"maxOps", "max-ops", "int64_t", "100000", "the most ops that a function may unroll to">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

def ExpandCollectivesPass : Pass<"dist-expand-collectives", "::mlir::ModuleOp"> {
  let summary = "collectives on equal contiguous chunks; accumulate unrolled";
  let description = [{
    What libraries offer: chunks that are equal, contiguous and in rank order. Afterwards all_gather and reduce_scatter work on dimension 0 without
    padding, all_to_all is `split = 0 concat = 1` from `N x chunk` to `1 x (N * chunk)`, all_slice is a dynamic slice at this device's
    position, a `dist.position_constant` a row of a table, and collectives over one device are gone. Pads, transposes and slices around them are `nn` ops, which kernels fuse. `dist.accumulate`
    becomes its micro-batches one after another.

    ```mlir
    %0 = dist.all_gather {"x"} dim = 0 %a {reason = "..."} : tensor<3xf32> -> tensor<5xf32>
    // becomes, with "x"=2
    %g = dist.all_gather {"x"} dim = 0 %a {reason = "..."} : tensor<3xf32> -> tensor<6xf32>
    %0 = nn.slice %g dim = 0 start = 0 : tensor<6xf32> -> tensor<5xf32>
    ```
  }];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect"];
}

def NarrowPositionsPass : Pass<"dist-narrow-positions", "::mlir::ModuleOp"> {
  let summary = "what computes runs only where it is needed";
  let description = [{
    A local program is one straight line for all mesh positions, in which communication says who takes part in it (`dist.at`). What computes on a value that
    only some positions received has a meaning only there, and what only some of them send or return is needed only there. This pass says so: an op
    that computes runs (`dist.at`) at the positions that have all its operands and need its result, for an op or a message there, or to return it. Each
    position's part of the line is then what a compiler for that position alone would make: kernels, buffers and arguments below are its own.

    Arguments and constants are everywhere. A dist.select needs each operand only where it takes that one, and is gone where one is left; where it
    leaves an argument that the function updates as it is, and nothing else there reads the argument, nothing is to be done. What nobody needs is erased.
    Programs in which all positions communicate alike stay as they are.

    ```mlir
    %h = nn.matmul %x, %w0 : ...
    dist.send {"pipe"} %h to %one {dist.at = array<i64: 0>} : tensor<4x4xf32>
    %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<4x4xf32>
    %y = nn.matmul %r, %w1 : ...
    // becomes
    %h = nn.matmul %x, %w0 {dist.at = array<i64: 0>} : ...
    dist.send {"pipe"} %h to %one {dist.at = array<i64: 0>} : tensor<4x4xf32>
    %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<4x4xf32>
    %y = nn.matmul %r, %w1 {dist.at = array<i64: 1>} : ...
    ```
  }];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def ExplainPass : Pass<"dist-explain", "::mlir::ModuleOp"> {
  let summary = "why each collective exists, and what would remove it";
  let description = [{
    Prints, and changes nothing: for every collective of a local program (L2) the bytes that one rank sends, the op that asks for it, the annotation
    that brought the axis it moves, what runs between its start and its first use, and what would remove it. Collectives that are equal but for
    their layer are one entry; loops and branches of a program by hand are told as they run. The totals at the end are those of `--report`. Text goes to the standard error stream, as that of MLIR's own analyses.

    ```mlir
    %1 = dist.all_reduce {"x"} sum %0 {reason = #dist.reason<"result 0" moves ... because <"the annotation of \22w\22 at f.mlir:7:5">>} : tensor<8x2xf32>
    return %1 : tensor<8x2xf32>
    // prints
    1 collective in @f: one rank sends 64 bytes in a step

    all_reduce {"x"}, 2 ranks, tensor<8x2xf32>: 64 bytes
      for         result 0: [{}, {} ] sum{"x"} -> [{}, {} ]
      because     the annotation of "w" at f.mlir:7:5
      beside      nothing: the step returns it as result 0 at once
      removed by  change the annotation of "w" at f.mlir:7:5: a result of the function is combined over the ranks of {"x"}
    ```
  }];
  let options = [
    Option<"overlap", "overlap", "bool", "true", "collectives run beside what follows them, as without --no-overlap">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

// Contracts.

def VerifyGlobalPass : Pass<"dist-verify-global", "::mlir::ModuleOp"> {
  let summary = "the contract of an annotated L1 program";
  let description = [{
    Checks what `dist-partition` relies on, and changes nothing: no collectives, and no op that only later passes make; where the module has a mesh, a closed sharding on every tensor; partial
    values only where a sharded reduction or an op that is linear in them makes them (a non-linear op on a partial value must read it
    reduced); function results reduced, updated arguments and their new values in one layout; no op without a sharding rule on a sharded operand; no op that computes a value again
    (`nn.recompute`) is read by the forward pass, on one device either.
  }];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def VerifyAxesPass : Pass<"dist-verify-axes", "::mlir::ModuleOp"> {
  let summary = "every mesh axis shards something";
  let description = [{
    An axis of more than one device that no sharding names would make its devices repeat each other's work, in silence. Such an axis is
    refused, as is a tensor that lies flat over axes which no batch is split over, in a training or inference step behind `dist-propagate`; evaluation keeps the mesh of training, of which it may need less. Devices that
    have no row of a batch, or of a micro-batch, compute padding only, which is right and wasteful: a remark tells of them. Changes nothing.

    Refused, when nothing below names "tensor":
    ```mlir
    dist.mesh @mesh <["data"=2, "tensor"=2]>
    ```
  }];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

def VerifyLocalPass : Pass<"dist-verify-local", "::mlir::ModuleOp"> {
  let summary = "the contract of a fully partitioned L2 program";
  let description = [{
    Checks, and changes nothing: no `dist.reshard`, no sharding that names an axis and no mean is left; in a function that the partitioner made (it carries
    `dist.global`) every collective says its reason, and every value that `dist.globals` calls partial is reduced exactly once before an op that is not
    linear in it, and no op that computes a value again (`nn.recompute`) is read by the forward pass. Functions written by hand at L2 carry no
    tags, so their partial values cannot be known. Control flow must depend only on the position and constants, and bring each collective its whole
    group; values are followed through it as it runs. What a function sends is matched by `exec-verify`, on the rows that run.

    No parameter that lies flat `per_use` (ZeRO-3) is kept from one part of the step to another, and branches and loops are followed as they run.
    A device has it whole from the op that puts it together to the last op that reads it, or reads what is made of it alone and has more elements than
    the device's share: in another type, shape, order or bucket, moved or computed with constants. All ops meanwhile that read a parameter which is
    put together so belong to one part: the forward pass, the backward pass or the update. Values of fewer elements (halves, sums, another
    device's shard) that live from one part to another are together no more than the share. A value of several parameters, or of a parameter and
    data, is the model's, as an activation is. So a gather for the backward pass stands behind the last op of the forward pass that reads
    a parameter:

    ```mlir
    %0 = dist.all_gather {"data"} dim = 0 %w {reason = "forward"} : tensor<8xf32> -> tensor<16xf32>
    %1 = dist.all_gather {"data"} dim = 0 %w {reason = "backward"} : tensor<8xf32> -> tensor<16xf32>   // refused: %2 is still to come
    %2 = nn.mul %x, %0 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>                              // of the forward pass
    %3 = nn.mul %2, %1 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>                              // of the backward pass
    ```
    Micro-batches put together what they read. What a function returns is copied where it is complete, and prolongs nothing; what arrives by
    `dist.recv` is not followed.
  }];
  // Of the copy whose control flow is folded.
  let dependentDialects = ["::shoal::dist::DistDialect", "::shoal::nn::NNDialect", "::mlir::arith::ArithDialect"];
}

#endif
