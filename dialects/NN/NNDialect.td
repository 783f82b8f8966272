#ifndef SHOAL_NN_DIALECT
#define SHOAL_NN_DIALECT

include "mlir/IR/OpBase.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::shoal::nn";
  let summary = "The model: tensor ops with the names the field uses";
  let description = [{
    A model is a `func.func` on tensors of static shape whose arguments and results say what they are.

    | attribute | on | meaning |
    | --- | --- | --- |
    | `nn.input = "x"` | argument | data, sharded by its first (sample) dimension; `#nn.input<"x", unbatched>`: whole on every rank |
    | `nn.indices = #nn.indices<29, ignored = -100>` | argument, beside `nn.input` | integers that it may hold; made by `nn-bound-indices` |
    | `nn.param = #nn.param<"w", init = kaiming_uniform>` | argument | trained parameter |
    | `nn.master` | argument, beside `nn.param` | f32 of which the step uses a bf16 copy; made by `nn-mixed-precision` |
    | `nn.buffer = #nn.buffer<"bn.running_mean", init = 0.0>` | argument | kept and saved beside the parameters, not trained |
    | `nn.state = #nn.state<"w.m", of = "w", init = 0.0>` | argument | optimizer state, made by `nn-optimize` |
    | `nn.step` | argument, `tensor<i64>` | steps done so far |
    | `nn.seed` | argument, `tensor<i64>` | key of the random ops, drawn from `--seed`; made by `nn-seed` |
    | `nn.valid_rows` | argument, `tensor<i64>` | real rows of this batch; made by `nn-explicit-counts` |
    | `nn.loss` | result, scalar | what is minimised |
    | `nn.output = "logits"` | result | written by `--output` |
    | `nn.batch_dim = 0` | result, beside `nn.output` | its dimension of batch rows, of which files hold the real ones; made by `nn-explicit-counts` |
    | `nn.metric = "grad_norm"` | result, scalar | reported each step |
    | `nn.grad = "w"` | result | the gradient that the update sees, before clipping; made by `nn-differentiate` |
    | `nn.updates = "w"` | result | replaces the argument of that name (param, buffer, state, or "step"), in its buffer |

    Ops may carry `nn.layer = "h.3"`. Those that `nn-recompute` makes carry `nn.recompute`, which keeps them apart from the ops that they repeat. A model marked `nn.evaluation` computes the loss of a training model without training it; `nn-select-results`
    makes it so, and it runs on the parameters of that training step.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr llvm::StringLiteral kInputAttr = "nn.input";
    static constexpr llvm::StringLiteral kIndicesAttr = "nn.indices";
    static constexpr llvm::StringLiteral kParamAttr = "nn.param";
    static constexpr llvm::StringLiteral kMasterAttr = "nn.master";
    static constexpr llvm::StringLiteral kBufferAttr = "nn.buffer";
    static constexpr llvm::StringLiteral kStateAttr = "nn.state";
    static constexpr llvm::StringLiteral kStepAttr = "nn.step";
    static constexpr llvm::StringLiteral kSeedAttr = "nn.seed";
    static constexpr llvm::StringLiteral kValidRowsAttr = "nn.valid_rows";
    static constexpr llvm::StringLiteral kLossAttr = "nn.loss";
    static constexpr llvm::StringLiteral kOutputAttr = "nn.output";
    static constexpr llvm::StringLiteral kMetricAttr = "nn.metric";
    static constexpr llvm::StringLiteral kGradAttr = "nn.grad";
    static constexpr llvm::StringLiteral kUpdatesAttr = "nn.updates";
    static constexpr llvm::StringLiteral kLayerAttr = "nn.layer";
    static constexpr llvm::StringLiteral kRecomputeAttr = "nn.recompute";

    void registerAttributes();
  }];
}

#endif
