#ifndef SHOAL_NN_PASSES
#define SHOAL_NN_PASSES

include "mlir/Pass/PassBase.td"

def VerifySizesPass : Pass<"nn-verify-sizes", "::mlir::ModuleOp"> {
  let summary = "every tensor has elements, and no more than sums of bytes can count";
  let description = [{
    What a user wrote is held against the sizes that later passes rely on: a tensor of static shape has from 1 to 2^40 elements, so that bytes of a
    whole program fit 64 bits, and no shard is empty before the plan makes it so. Changes nothing.

    Refused:
    ```mlir
    %0 = nn.relu %x : tensor<32x0xf32>
    ```
  }];
}

def VerifyModelPass : Pass<"nn-verify-model", "::mlir::ModuleOp"> {
  let summary = "a model as it was written has nothing that only passes write";
  let description = [{
    Passes tell each other by attributes what they did, and believe them. One written by hand would be obeyed where it is not checked, and ignored where it is
    made again. So each dialect lists the attributes and ops that only passes write (`MadeByPasses`), and a model may have none of these ops, and none of
    these attributes on ops, arguments or results; that it is already differentiated is said first. Nor may a model use a name that `nn-optimize` gives: of a metric (`grad_norm`, `lr`) or of state (`w.m`, where `w` is a parameter), with
    whatever optimizer it is trained. A program written by hand on a later level keeps its rights. Changes nothing.

    Refused:
    ```mlir
    func.func @f(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.bucket = #dist.bucket<[<#nn.param<"z", init = ones>, tensor<4xf32>>]>})
    ```
  }];
}

def SelectResultsPass : Pass<"nn-select-results", "::mlir::ModuleOp"> {
  let summary = "keep the results that training, evaluation or inference needs";
  let description = [{
    One file describes both the training step and the forward program. `mode=train` keeps the loss, metrics and
    updates (those of buffers too); `mode=infer` keeps the outputs; `mode=eval` keeps loss and metrics and marks the function
    `nn.evaluation`: it updates nothing, and runs between training steps on their parameters. In both, ops that work on the batch in
    training (batch_norm) become what they are in inference. Ops and arguments that nothing needs any more go away, so that inference asks for no labels;
    an op that opens a stage of the pipeline (`pipe.stage`) leaves that to the op behind it.
    Unused parameters stay in training: `nn-differentiate` names them.

    Before, with `mode=infer`:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8xi64> {nn.input = "y"})
        -> (tensor<f32> {nn.loss}, tensor<8x4xf32> {nn.output = "z"}) {
      %0 = nn.tanh %x : tensor<8x4xf32>
      %1, %lse1 = nn.cross_entropy mean %0, %y : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
      return %1, %0 : tensor<f32>, tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "z"}) {
      %0 = nn.tanh %x : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    ```
  }];
  let options = [Option<"mode", "mode", "std::string", "\"train\"", "train, eval or infer">];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def BoundIndicesPass : Pass<"nn-bound-indices", "::mlir::ModuleOp"> {
  let summary = "inputs say which rows or classes their elements index";
  let description = [{
    Data come from outside, and a number that indexes no row or class must be refused, not computed with. The pass asks the ops that take all elements of an
    input as indices (`IndexOperandOpInterface`) and writes what they agree on beside the input. It runs on the model as it was written, since a plan may
    take such an op apart: a loss whose classes are sharded is comparisons. In a program written by hand at L2 it
    runs before kernels are outlined. A range that is there already stays, as far as the ops agree. The rank program carries the range, and the run
    holds data against it.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8xi64> {nn.input = "y"}) -> (tensor<f32> {nn.loss}) {
      %0, %lse = nn.cross_entropy mean %x, %y : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8xi64> {nn.indices = #nn.indices<4, ignored = -100>, nn.input = "y"}) -> (tensor<f32> {nn.loss})
    ```
  }];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def SeedPass : Pass<"nn-seed", "::mlir::ModuleOp"> {
  let summary = "give random ops the seed and the step they draw from";
  let description = [{
    A model says where it is random (`nn.dropout` and its id); what it draws is a function of (seed, step, id, index in the whole tensor), so
    that every plan and every rank agree. The pass adds the hidden argument `nn.seed` and the operands, with `nn.step`, which is added too
    where the model has none. Two ops with one id would draw the same numbers and are refused. Ops inside `dist.accumulate` count their
    elements in the whole batch: the first index of each micro-batch is one more input. Models without random ops stay as they are, so
    behind `nn-select-results` evaluation and inference ask for no seed.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "y"}) {
      %0 = nn.dropout %x rate = 0.1 id = 0 : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %seed: tensor<i64> {nn.seed}, %step: tensor<i64> {nn.step})
        -> (tensor<8x4xf32> {nn.output = "y"}) {
      %0 = nn.dropout %x rate = 0.1 id = 0 seed = %seed step = %step : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def ConvertDtypePass : Pass<"nn-convert-dtype", "::mlir::ModuleOp"> {
  let summary = "give every float tensor one element type";
  let description = [{
    `--dtype f64` compares plans to rounding errors only; `f32` trains. The pass changes arguments, results and constants alike, before
    anything is derived from them. Casts between float types become identities and fold away. bf16 is refused:
    mixed precision is a cast from an f32 argument, not another type of the argument (`nn-mixed-precision`).

    Before, with `to=f64`:
    ```mlir
    %c = nn.constant dense<0.5> : tensor<f32>
    %0 = nn.mul %x, %c : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    After:
    ```mlir
    %c = nn.constant dense<0.5> : tensor<f64>
    %0 = nn.mul %x, %c : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
    ```
  }];
  let options = [Option<"to", "to", "std::string", "\"f32\"", "f32 or f64">];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def MixedPrecisionPass : Pass<"nn-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "activations in bf16, from f32 masters";
  let description = [{
    `--dtype bf16` (Micikevicius et al. 2018; Kalamkar et al. 2019). Arguments and results keep their types. A parameter becomes a master (`nn.master`) that
    the step reads through one cast, its copy of class `param`; what comes from inputs alone is cast where it meets activations. The pass runs on the forward program,
    behind `nn-explicit-counts`, so that what is derived later has these types.

    | ops | operands | result |
    | --- | --- | --- |
    | matmul, tensordot, attention | bf16 | bf16; summed in f32 |
    | elementwise ops, softmax, norms of rows, dropout, masks, rotations, embedding, moves | as they come | bf16 where all that is not scalar or made of inputs alone is bf16, computed in f32 and rounded once; else f32 |
    | reductions, exponentials, logarithms, roots, losses, and what is not listed | f32 | f32 |

    So losses, metrics, statistics of rows and of batches, and running statistics are f32. Gradients of an op have the types of its operands; inside, they are
    computed in f32 and rounded once as well. bf16 has the range of f32, so that losses are not scaled. Ops with regions are refused.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
      %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
      %1 = nn.tanh %0 : tensor<8x2xf32>
      %2 = nn.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
      return %2 : tensor<f32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
      %0 = nn.cast %w {exec.class = "param"} : tensor<4x2xf32> -> tensor<4x2xbf16>
      %1 = nn.cast %x : tensor<8x4xf32> -> tensor<8x4xbf16>
      %2 = nn.matmul %1, %0 : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
      %3 = nn.tanh %2 : tensor<8x2xbf16>
      %4 = nn.cast %3 : tensor<8x2xbf16> -> tensor<8x2xf32>
      %5 = nn.reduce sum %4 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
      return %5 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::shoal::nn::NNDialect", "::shoal::exec::ExecDialect"];
}

def GradientDtypePass : Pass<"nn-gradient-dtype", "::mlir::ModuleOp"> {
  let summary = "the element type of gradients of masters";
  let description = [{
    The gradient of a master that `nn-differentiate` makes is that of its bf16 copy, widened. `to=f32` takes the rounding out where nothing else
    reads the value: the product of a weight gradient writes the f32 sums that it has, sums of several gradients and over rows are taken in f32. `to=bf16` leaves the widening out.
    Gradients are then added up and reduced in this type; `nn-optimize` computes in f32 in any case.

    Before:
    ```mlir
    %0 = nn.matmul %x, %ct {transpose_a} : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %1 = nn.cast %0 : tensor<4x2xbf16> -> tensor<4x2xf32>
    return %loss, %1 : tensor<f32>, tensor<4x2xf32>  // {nn.grad = "w"}
    ```
    After, with `to=f32`:
    ```mlir
    %0 = nn.matmul %x, %ct {transpose_a} : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
    return %loss, %0 : tensor<f32>, tensor<4x2xf32>
    ```
  }];
  let options = [Option<"to", "to", "std::string", "\"f32\"", "f32 or bf16">];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def ExplicitCountsPass : Pass<"nn-explicit-counts", "::mlir::ModuleOp"> {
  let summary = "means become sums divided by a count; rows that are not real never count";
  let description = [{
    The mean over a batch is no mean of the shards' means, and the last batch of an epoch is short. So every mean becomes a sum, which any plan may
    split, divided by a count of the whole batch. The hidden argument `nn.valid_rows` holds the number of real rows. The
    pass follows dimension 0 of the batched inputs through the ops, by their sharding rules, and every reduction over such a dimension
    reads `nn.mask`: identity of the reduction past the limit, `ignore_index` for the targets of cross_entropy. Ops that
    combine rows in another way (softmax over the batch, batch_norm) are decomposed first. Where the dimension cannot be followed to a reduction, the
    pass fails and says where it was lost. Gradients need no masks: they are derivatives of masked sums.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
      %0 = nn.reduce mean %x dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %valid: tensor<i64> {nn.valid_rows}) -> (tensor<f32> {nn.loss}) {
      %c = nn.constant dense<4> : tensor<i64>
      %0 = nn.mul %valid, %c : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %1 = nn.cast %0 : tensor<i64> -> tensor<f32>
      %2 = nn.mask %x dim = 0 limit = %valid fill = 0.0 : tensor<8x4xf32>
      %3 = nn.reduce sum %2 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
      %4 = nn.div %3, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %4 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def DifferentiatePass : Pass<"nn-differentiate", "::mlir::ModuleOp"> {
  let summary = "append the backward program: one gradient per parameter";
  let description = [{
    Reverse-mode differentiation of the `nn.loss` result, by the gradients of the ops on a path from a parameter to the loss. Cotangents of a value that is
    used several times are added. The new ops inherit `nn.layer`. A parameter that does not reach the loss is an error: it would never be trained.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>})
        -> (tensor<f32> {nn.loss}) {
      %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
      %1 = nn.reduce sum %0 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
      return %1 : tensor<f32>
    }
    ```
    After, the body ends in:
    ```mlir
      %c = nn.constant dense<1.0> : tensor<f32>
      %2 = nn.reshape %c : tensor<f32> -> tensor<1x1xf32>
      %3 = nn.broadcast %2 : tensor<1x1xf32> -> tensor<8x2xf32>
      %4 = nn.matmul %x, %3 {transpose_a} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
      return %1, %4 : tensor<f32>, tensor<4x2xf32>   // the second is {nn.grad = "w"}
    ```
  }];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def RecomputePass : Pass<"nn-recompute", "::mlir::ModuleOp"> {
  let summary = "backward computes activations of a layer again, instead of keeping them";
  let description = [{
    What the backward pass reads of the forward pass lives from one to the other, and is most of the memory of a step. The pass copies the ops that
    make such values, per layer (`nn.layer`), to right before the first op of the backward pass that reads them (Chen et al. 2016). What enters a layer is
    kept, and so is what does not depend on the batch: casts of weights, tables of rotations. With `mode=full` nothing else is. With
    `mode=selective` results of products stay, which cost the most, and attention, norms, activation functions, dropout and sums run again
    (Korthikanti et al. 2022). Only what backward needs is copied: of the last product of a layer mostly nothing. The layer that makes the loss keeps
    all: its backward pass follows at once, so that nothing would live shorter.

    In a pipeline the unit is the part of a layer that lies in one stage (`pipe.stage`): what another stage makes is sent, and kept as what enters it.

    Copies carry `nn.recompute`, so that no later pass merges them with the ops that they repeat, and kernels keep the passes apart. Random ops
    draw the same numbers, since they have the same id. A model without layers is an error.

    Before, after `nn-differentiate`, with `mode=selective`:
    ```mlir
    %0 = nn.matmul %x, %w1 {nn.layer = "h.0"} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = nn.tanh %0 {nn.layer = "h.0"} : tensor<8x6xf32>
    ...
    %5 = nn.matmul %1, %4 {nn.layer = "h.0", transpose_a} : (tensor<8x6xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
    ```
    After:
    ```mlir
    %0 = nn.matmul %x, %w1 {nn.layer = "h.0"} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = nn.tanh %0 {nn.layer = "h.0"} : tensor<8x6xf32>
    ...
    %5 = nn.tanh %0 {nn.layer = "h.0", nn.recompute} : tensor<8x6xf32>
    %6 = nn.matmul %5, %4 {nn.layer = "h.0", transpose_a} : (tensor<8x6xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
    ```
  }];
  let options = [Option<"mode", "mode", "std::string", "\"full\"", "selective or full">];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

def OptimizePass : Pass<"nn-optimize", "::mlir::ModuleOp"> {
  let summary = "append the optimizer: updates of parameters, and its state as arguments";
  let description = [{
    Consumes the gradients of `nn-differentiate`. Every parameter gets a result that `nn.updates` it; momentum and moments are arguments
    `#nn.state` with results of their own, and Adam's count of steps is the argument `nn.step`. With `clip-grad-norm` the updates (not the
    `nn.grad` results) see gradients times min(1, c / (norm + 1e-6)), where the norm is over all parameters; `grad-norm` reports it, before clipping.
    A gradient of another float type than its parameter is cast before the update, and squares for the norm are summed in f32 or wider.
    Options become constants of the parameters' type; one that would be infinite or 0 in it is refused.

    With `lr-schedule` the learning rate is computed in the program, from `nn.step`, and is the metric `lr`. After t steps it is lr (t + 1) / W
    while t < W = `warmup-steps`; then lr (`constant`), or falls over the steps from W to D = `decay-steps` to `min-lr` in a
    line (`linear`) or along half a cosine (`cosine`), and stays there.

    Before:
    ```mlir
    func.func @f(..., %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "w"})
    ```
    After, with `optimizer=sgd lr=0.1 momentum=0.9`:
    ```mlir
    func.func @f(..., %w: tensor<4xf32> {nn.param = ...}, %v: tensor<4xf32> {nn.state = #nn.state<"w.velocity", of = "w", init = 0.0>})
        -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "w"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w.velocity"}) {
      ...
      %lr = nn.constant dense<0.1> : tensor<f32>
      %0:2 = nn.momentum_update %w, %g, %v lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
      return %loss, %g, %0#0, %0#1 : ...
    }
    ```
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"sgd\"", "sgd, adam or adamw">,
    Option<"lr", "lr", "double", "0.01", "learning rate">,
    Option<"lrSchedule", "lr-schedule", "std::string", "\"none\"", "none, constant, linear or cosine">,
    Option<"warmupSteps", "warmup-steps", "int64_t", "0", "steps in which the rate rises to lr">,
    Option<"decaySteps", "decay-steps", "int64_t", "0", "step at which the rate is min-lr, counted from the first one">,
    Option<"minLr", "min-lr", "double", "0.0", "rate after decay-steps">,
    Option<"momentum", "momentum", "double", "0.0", "momentum of sgd">,
    Option<"nesterov", "nesterov", "bool", "false", "Nesterov's form of sgd's momentum">,
    Option<"beta1", "beta1", "double", "0.9", "decay of adam's first moment">,
    Option<"beta2", "beta2", "double", "0.999", "decay of adam's second moment">,
    Option<"eps", "eps", "double", "1e-8", "added to the root of adam's second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.0", "L2 term (sgd, adam) or decoupled decay (adamw)">,
    Option<"decay", "decay", "std::string", "\"all\"", "parameters that decay: all, or matrices (2 dimensions and more)">,
    Option<"clipGradNorm", "clip-grad-norm", "double", "0.0", "largest norm of all gradients; 0 does not clip">,
    Option<"gradNorm", "grad-norm", "bool", "false", "report the norm of all gradients as a metric">];
  let dependentDialects = ["::shoal::nn::NNDialect"];
}

#endif
