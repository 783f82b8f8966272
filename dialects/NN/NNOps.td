#ifndef SHOAL_NN_OPS
#define SHOAL_NN_OPS

include "NNAttrs.td"
include "NNInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Interfaces/ShardingRuleOpInterface.td"
include "Interfaces/DifferentiableOpInterface.td"
include "Interfaces/KnownAttributes.td"
include "Interfaces/PositionedOpInterface.td"

// Floats: f32, f64, bf16 (storage: kernels compute in f32). Integers: i32, i64; i1 from compare.
def NN_Float : AnyTypeOf<[F32, F64, BF16]>;
def NN_Int : AnyTypeOf<[I32, I64]>;
def NN_Number : AnyTypeOf<[NN_Float, NN_Int]>;
def NN_Any : AnyTypeOf<[NN_Float, NN_Int, I1]>;
class NN_TensorOf<Type t> : StaticShapeTensorOf<[t]>;
def NN_FloatTensor : NN_TensorOf<NN_Float>;
// What is computed in.
def NN_WideTensor : NN_TensorOf<AnyTypeOf<[F32, F64]>>;
def NN_IntTensor : NN_TensorOf<NN_Int>;
def NN_NumberTensor : NN_TensorOf<NN_Number>;
def NN_Tensor : NN_TensorOf<NN_Any>;
def NN_BoolTensor : NN_TensorOf<I1>;
def NN_IndexScalar : Type<0DTensorOf<[I64]>.predicate, "tensor<i64>", "::mlir::RankedTensorType">,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat(traits, [Pure, KnownAttributes,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>])>;

// An op that says more than the common rule does: how it localizes or decomposes.
class NN_PositionOp<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat(traits, [Pure, KnownAttributes,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["localize"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>])>;
class NN_DecomposableOp<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat(traits, [Pure, KnownAttributes,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["decompose"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>])>;

def NN_ConstantOp : NN_PositionOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a constant tensor";
  let description = "`nn.constant dense<1.0> : tensor<8xf32>`.";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
  let assemblyFormat = "attr-dict $value";
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$splat)>];
}

// Elementwise, numpy broadcasting.

class NN_Binary<string mnemonic, string sum, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<InferTypeOpInterface>])> {
  let summary = sum;
  let description = "Operands broadcast as in numpy (aligned at the last dimension, size 1 stretches). Equal element types.";
  let arguments = (ins NN_NumberTensor:$lhs, NN_NumberTensor:$rhs);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)";
}
def NN_AddOp : NN_Binary<"add", "sum", [Commutative]>;
def NN_SubOp : NN_Binary<"sub", "difference">;
def NN_MulOp : NN_Binary<"mul", "product", [Commutative]>;
def NN_DivOp : NN_Binary<"div", "quotient"> {
  let description = [{
    Operands broadcast as in numpy. Equal element types. Integers truncate toward zero; an integer divided by zero is 0, so that
    no value makes a program stop.
  }];
}
def NN_MaximumOp : NN_Binary<"maximum", "larger of two, NaN propagates", [Commutative]>;
def NN_MinimumOp : NN_Binary<"minimum", "smaller of two, NaN propagates", [Commutative]>;

class NN_Unary<string mnemonic, string sum> : NN_Op<mnemonic, [SameOperandsAndResultType]> {
  let summary = sum;
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}
def NN_NegOp : NN_Unary<"neg", "-x">;
def NN_ExpOp : NN_Unary<"exp", "e^x">;
def NN_LogOp : NN_Unary<"log", "natural logarithm">;
def NN_SqrtOp : NN_Unary<"sqrt", "square root">;
def NN_RsqrtOp : NN_Unary<"rsqrt", "1/sqrt(x)">;
def NN_TanhOp : NN_Unary<"tanh", "hyperbolic tangent">;
def NN_ReluOp : NN_Unary<"relu", "max(x, 0); the gradient at 0 is 0">;
def NN_SigmoidOp : NN_Unary<"sigmoid", "1 / (1 + e^-x)">;
def NN_SiluOp : NN_Unary<"silu", "x * sigmoid(x), also called swish"> {
  let description = "Of minus infinity it is NaN, infinity times 0, as the formula says; the limit would be -0.";
}
def NN_ErfOp : NN_Unary<"erf", "error function, 2/sqrt(pi) times the integral of e^-t^2 from 0 to x">;
def NN_ErfcOp : NN_Unary<"erfc", "complement of the error function, 1 - erf(x)"> {
  let description = "Keeps its digits where erf is so near 1 that the difference has none: erfc(12) is 1.36e-64.";
}
def NN_SinOp : NN_Unary<"sin", "sine of radians">;
def NN_CosOp : NN_Unary<"cos", "cosine of radians">;

def NN_GeluOp : NN_Op<"gelu", [SameOperandsAndResultType]> {
  let summary = "x times the normal distribution function of x";
  let description = [{
    `nn.gelu erf %x : tensor<8x4xf32>` is x/2 erfc(-x/sqrt(2)); `nn.gelu tanh` is its approximation
    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Hendrycks & Gimpel 2016. Of minus infinity both are NaN, infinity
    times 0, as the formulas say; the limit would be -0.
  }];
  let arguments = (ins NN_GeluFormAttr:$form, NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "custom<Keyword>($form) $input attr-dict `:` type($result)";
}

def NN_CompareOp : NN_Op<"compare", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "elementwise comparison, numpy broadcasting";
  let description = "`nn.compare gt %a, %b : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>`.";
  let arguments = (ins NN_PredicateAttr:$predicate, NN_NumberTensor:$lhs, NN_NumberTensor:$rhs);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "custom<Keyword>($predicate) $lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)";
}

def NN_SelectOp : NN_Op<"select", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "on_true where the condition holds, else on_false; numpy broadcasting";
  let arguments = (ins NN_BoolTensor:$condition, NN_NumberTensor:$on_true, NN_NumberTensor:$on_false);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` `(` type($condition) `,` type($on_true) `,` type($on_false) `)` `->` type($result)";
}

def NN_CastOp : NN_Op<"cast"> {
  let summary = "element type conversion (float to integer truncates toward zero)";
  let description = [{
    With `of_terms`, between floats, the input may be a partial value, whose terms are rounded before they are summed over devices. So
    ops end that add up in a wider type than their result's, of which a device has a term: gradients of attention in a ring.
  }];
  let arguments = (ins NN_Tensor:$input, UnitAttr:$of_terms);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "$input (`of_terms` $of_terms^)? attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_MaskOp : NN_PositionOp<"mask", [AllTypesMatch<["input", "result"]>]> {
  let summary = "elements at or past a limit along a dimension become a constant";
  let description = [{
    `nn.mask %x dim = 0 limit = %valid fill = 0.0 : tensor<32x10xf32>`: keeps x where `offset + index(dim) < limit`. `limit` is a
    scalar `tensor<i64>` in global indices; `offset` (0 when absent) is the global index of the first local element, set by
    the partitioner. One op serves the short last batch, and the padding of shards.
    For integers `fill` must be a whole number.
  }];
  let arguments = (ins NN_NumberTensor:$input, NN_IndexScalar:$limit, Optional<NN_IndexScalar>:$offset,
                       I64Attr:$dim, F64Attr:$fill);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim `limit` `=` $limit (`offset` `=` $offset^)? `fill` `=` $fill attr-dict `:` type($result)";
  let hasVerifier = 1;
}

// Shape.

def NN_ReshapeOp : NN_Op<"reshape"> {
  let summary = "the same elements, row-major, in another shape";
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def NN_TransposeOp : NN_Op<"transpose", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "result dimension i is input dimension permutation[i]";
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}
def NN_BroadcastOp : NN_Op<"broadcast"> {
  let summary = "numpy broadcast to a larger shape";
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def NN_SliceOp : NN_Op<"slice"> {
  let summary = "elements [start, start + size) of one dimension";
  let description = "`nn.slice %x dim = 0 start = 2 : tensor<8x4xf32> -> tensor<3x4xf32>`.";
  let arguments = (ins NN_Tensor:$input, I64Attr:$dim, I64Attr:$start);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim `start` `=` $start attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}
def NN_PadOp : NN_Op<"pad"> {
  let summary = "zeros before and after one dimension";
  let description = "`nn.pad %x dim = 0 low = 1 : tensor<3x4xf32> -> tensor<8x4xf32>` (the rest is added after).";
  let arguments = (ins NN_Tensor:$input, I64Attr:$dim, I64Attr:$low);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim `low` `=` $low attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}
def NN_DynamicSliceOp : NN_Op<"dynamic_slice"> {
  let summary = "elements [start, start + size) of one dimension, start known at run time";
  let description = [{
    `nn.dynamic_slice %x dim = 0 start = %s : tensor<8x4xf32> -> tensor<2x4xf32>`. `start` is clamped so that the slice lies inside.
    Made by `dist-expand-collectives` for all_slice, and by `dist-microbatch` for constants with a value for each row.
  }];
  let arguments = (ins NN_Tensor:$input, NN_IndexScalar:$start, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim `start` `=` $start attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def NN_DynamicUpdateSliceOp : NN_Op<"dynamic_update_slice", [AllTypesMatch<["input", "result"]>]> {
  let summary = "elements [start, start + size) of one dimension replaced, start known at run time";
  let description = [{
    `nn.dynamic_update_slice %x, %u dim = 0 start = %s : tensor<8x4xf32>, tensor<2x4xf32>`. `start` is clamped so that the slice
    lies inside, as that of `nn.dynamic_slice`, whose gradient it is.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$update, NN_IndexScalar:$start, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `,` $update `dim` `=` $dim `start` `=` $start attr-dict `:` type($input) `,` type($update)";
  let hasVerifier = 1;
}
def NN_ConcatOp : NN_Op<"concat"> {
  let summary = "tensors one after another along one dimension";
  let description = "`nn.concat %a, %b dim = 0 : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>`.";
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$inputs `dim` `=` $dim attr-dict `:` `(` type($inputs) `)` `->` type($result)";
  let hasVerifier = 1;
}
def NN_IotaOp : NN_PositionOp<"iota"> {
  let summary = "each element's index along one dimension";
  let description = "`nn.iota dim = 1 : tensor<4x8xi64>`. The index is global: on a shard an offset is added.";
  let arguments = (ins I64Attr:$dim);
  let results = (outs NN_IntTensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

// Contractions and reductions.

def NN_MatmulOp : NN_Op<"matmul"> {
  let summary = "matrix product with batch dimensions and transposes";
  let description = [{
    `nn.matmul %a, %b : (tensor<BxMxK>, tensor<BxKxN>) -> tensor<BxMxN>`. The last two dimensions are the matrix (`transpose_a`: a is KxM,
    `transpose_b`: b is NxK); the dimensions before are batches, equal in a and b, or absent in b (then b serves every batch).
    `sum_batch`: the products of all batches are added and the result has no batch dimensions (the gradient of a shared b).
    Sums in f32 for bf16, and of bf16 the result may be f32: the sums as they are. A library call (GEMM), never a generated kernel.
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$sum_batch);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` `(` type($a) `,` type($b) `)` `->` type($result)";
  let hasVerifier = 1;
}

def NN_TensordotOp : NN_Op<"tensordot", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "matrix product whose rows, columns and inner dimension are several dimensions each";
  let description = [{
    `nn.tensordot %a, %b axes = 1 : (tensor<4x12x24xf32>, tensor<24x3x4x6xf32>) -> tensor<4x12x3x4x6xf32>`: sums over the last `axes`
    dimensions of a and the first of b, in order (`transpose_a`: the first of a, `transpose_b`: the last of b). The result has the other
    dimensions of a, then those of b; numpy.tensordot with a number. So heads stay dimensions of their own, which shard apart from their
    elements. Sums and results of bf16 are those of `nn.matmul`. A library call (GEMM), never a generated kernel.
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, I64Attr:$axes, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b `axes` `=` $axes attr-dict `:` `(` type($a) `,` type($b) `)` `->` type($result)";
  let extraClassDeclaration = [{
    /// The dimensions of a and b that are summed over, and those that stay, as sizes.
    ::llvm::ArrayRef<int64_t> getInnerOfA(), getOuterOfA(), getInnerOfB(), getOuterOfB();
    /// The inferred type is that of the operands.
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual);
  }];
}

def NN_EmbeddingOp : NN_PositionOp<"embedding", [DeclareOpInterfaceMethods<InferTypeOpInterface>,
    DeclareOpInterfaceMethods<IndexOperandOpInterface>]> {
  let summary = "rows of a table by their numbers";
  let description = [{
    `nn.embedding %table, %ids : (tensor<50257x64xf32>, tensor<4x12xi64>) -> tensor<4x12x64xf32>`. A number outside the table gives a row of
    NaN. On a device the table may be some of the rows: `offset` is the number of its first, and `vocab` how many the whole has, both set by the
    partitioner; numbers of rows that lie elsewhere give zeros, so that the devices' results add up.
  }];
  let arguments = (ins NN_FloatTensor:$table, NN_IntTensor:$ids, Optional<NN_IndexScalar>:$offset, OptionalAttr<I64Attr>:$vocab);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$table `,` $ids (`offset` `=` $offset^)? (`vocab` `=` $vocab^)? attr-dict `:` `(` type($table) `,` type($ids) `)` `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows of the whole table.
    int64_t getNumRows() { return getVocab() ? int64_t(*getVocab()) : getTable().getType().getDimSize(0); }
  }];
}

def NN_EmbeddingGradOp : NN_PositionOp<"embedding_grad"> {
  let summary = "cotangent of the table of an embedding: rows added up by their numbers";
  let description = [{
    `nn.embedding_grad %ids, %ct : (tensor<4x12xi64>, tensor<4x12x64xf32>) -> tensor<50257x64xf32>`: row r is the sum of the rows of `ct` whose
    number is r, added in their order, in f32 for bf16. Numbers outside add nothing. `offset` as in `nn.embedding`. Made by `nn-differentiate`. A
    library call: the sum over rows that are met by chance is no loop nest.
  }];
  let arguments = (ins NN_IntTensor:$ids, NN_FloatTensor:$cotangent, Optional<NN_IndexScalar>:$offset);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $cotangent (`offset` `=` $offset^)? attr-dict `:` `(` type($ids) `,` type($cotangent) `)` `->` type($result)";
  let hasVerifier = 1;
}

def NN_ReduceOp : NN_Op<"reduce", [DeclareOpInterfaceMethods<InferTypeOpInterface>,
    DeclareOpInterfaceMethods<MeanOpInterface>]> {
  let summary = "sum, mean or max over dimensions";
  let description = [{
    `nn.reduce sum %x dims = [0] : tensor<8x4xf32> -> tensor<4xf32>`; `keep_dims` leaves size 1. `mean` is replaced by
    sum and an explicit count (`nn-explicit-counts`) before anything is differentiated or lowered. The gradient of max is shared evenly by ties.
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_NumberTensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$keep_dims);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input `dims` `=` $dims attr-dict `:` type($input) `->` type($result)";
}

class NN_Softmax<string mnemonic, string sum> : NN_DecomposableOp<mnemonic, [SameOperandsAndResultType]> {
  let summary = sum;
  let arguments = (ins NN_FloatTensor:$input, I64Attr:$dim);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def NN_SoftmaxOp : NN_Softmax<"softmax", "exp(x - max) / sum over a dimension">;
def NN_LogSoftmaxOp : NN_Softmax<"log_softmax", "x - max - log(sum(exp(x - max))) over a dimension">;

def NN_BatchNormOp : NN_DecomposableOp<"batch_norm", [DeclareOpInterfaceMethods<BatchStatisticsOpInterface>,
    DeclareOpInterfaceMethods<TrainingModeOpInterface>, AllTypesMatch<["input", "result"]>,
    AllTypesMatch<["scale", "bias", "running_mean", "running_var", "new_mean", "new_var"]>]> {
  let summary = "normalisation of each feature over the batch, and running statistics";
  let description = [{
    `%y, %m, %v = nn.batch_norm %x, %scale, %bias, %mean, %var momentum = 0.1 eps = 1.0e-5 : tensor<32x14xf32>, tensor<14xf32>`.
    Features are dimension 1; mean and variance are those of all other elements of the whole batch (Ioffe & Szegedy 2015). The
    result is `(x - mean) / sqrt(var + eps) * scale + bias`, with the biased variance. New running statistics are
    `(1 - momentum) * old + momentum * batch`, with the unbiased variance; of a single row, which has none, it is the biased
    one, 0 (PyTorch refuses such a batch). In inference the running statistics normalise, and stay as they are.

    `nn-explicit-counts` makes it sums, counts and elementwise ops, so that gradients, and statistics of the batch
    under every plan (what others call SyncBatchNorm), are those of its parts.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$scale, NN_FloatTensor:$bias, NN_FloatTensor:$running_mean,
                       NN_FloatTensor:$running_var, F64Attr:$momentum, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$new_mean, NN_FloatTensor:$new_var);
  let assemblyFormat = "$input `,` $scale `,` $bias `,` $running_mean `,` $running_var `momentum` `=` $momentum `eps` `=` $eps attr-dict `:` type($input) `,` type($scale)";
  let hasVerifier = 1;
}

// Losses.

def NN_MseLossOp : NN_Op<"mse_loss", [DeclareOpInterfaceMethods<MeanOpInterface>]> {
  let summary = "squared error, mean or sum over all elements";
  let description = "`nn.mse_loss mean %pred, %target : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>`.";
  let arguments = (ins NN_LossReductionAttr:$reduction, NN_FloatTensor:$prediction, NN_FloatTensor:$target);
  let results = (outs NN_FloatTensor:$loss);
  let assemblyFormat = "custom<Keyword>($reduction) $prediction `,` $target attr-dict `:` `(` type($prediction) `,` type($target) `)` `->` type($loss)";
  let hasVerifier = 1;
}

// The log-sum-exp of each row of logits.
class NN_LogSumExpOf<string logits> : TypesMatchWith<"lse has one number per row of logits", logits, "lse",
    "::shoal::nn::CrossEntropyOp::getLseType($_self)">;

def NN_CrossEntropyOp : NN_DecomposableOp<"cross_entropy", [DeclareOpInterfaceMethods<MeanOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    DeclareOpInterfaceMethods<IndexOperandOpInterface>, NN_LogSumExpOf<"logits">]> {
  let summary = "-log softmax at the target class, or against probabilities";
  let description = [{
    `%loss, %lse = nn.cross_entropy mean %logits, %labels ignore_index = -100 : (tensor<32x10xf32>, tensor<32xi64>) -> tensor<f32>`. Classes are the last
    dimension of logits. Integer targets (shape without the last dimension): targets equal to `ignore_index` count neither in the sum nor in the mean; any other
    target outside [0, classes) makes the loss NaN. Float targets (shape of logits): -sum(p * log_softmax), mean over rows.
    Zero targets: loss and gradient are 0.

    `lse` is log(sum(exp(logits))) of each row, here tensor<32xf32> (f32 for bf16). The loss of bf16 logits is bf16 or f32. The gradient reads it, so that it asks no row for its sum again.
    Where classes are sharded, the partitioner makes the loss three sums over devices of one number per row: the maximum, the sum of
    exponentials, and the target's logit (Shoeybi et al. 2019). Then the gradient of integer targets needs none.
  }];
  let arguments = (ins NN_LossReductionAttr:$reduction, NN_FloatTensor:$logits, NN_Tensor:$targets,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_FloatTensor:$loss, NN_FloatTensor:$lse);
  let extraClassDeclaration = "static ::mlir::RankedTensorType getLseType(::mlir::Type logits);";
  let builders = [OpBuilder<(ins "::mlir::Type":$loss, "::shoal::nn::LossReduction":$reduction, "::mlir::Value":$logits, "::mlir::Value":$targets),
      "build($_builder, $_state, loss, getLseType(logits.getType()), reduction, logits, targets);">];
  let assemblyFormat = "custom<Keyword>($reduction) $logits `,` $targets (`ignore_index` `=` $ignore_index^)? attr-dict `:` `(` type($logits) `,` type($targets) `)` `->` type($loss)";
  let hasVerifier = 1;
}

def NN_CrossEntropyGradOp : NN_DecomposableOp<"cross_entropy_grad", [DeclareOpInterfaceMethods<IndexOperandOpInterface>, NN_LogSumExpOf<"logits">]> {
  let summary = "cotangent of the logits of a summed cross_entropy";
  let description = [{
    `nn.cross_entropy_grad %logits, %labels, %lse, %scale : (tensor<32x10xf32>, tensor<32xi64>, tensor<f32>) -> tensor<32x10xf32>`:
    `scale * (exp(logits - lse) * sum(p) - p)` per row, 0 for ignored rows; `scale` is the scalar cotangent of the summed loss. Made by `nn-differentiate`.
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_Tensor:$targets, NN_FloatTensor:$lse, NN_FloatTensor:$scale,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$logits `,` $targets `,` $lse `,` $scale (`ignore_index` `=` $ignore_index^)? attr-dict `:` `(` type($logits) `,` type($targets) `,` type($scale) `)` `->` type($result)";
  let hasVerifier = 1;
}

// Optimizer updates.

class NN_Update<string mnemonic, list<string> tensors, list<string> states, string keepsZeros = "true">
    : NN_Op<mnemonic, [AllTypesMatch<tensors>, OptimizerUpdateOpInterface]> {
  let extraClassDeclaration = "::llvm::SmallVector<::mlir::Value> getStates() { return {"
    # !interleave(!foreach(state, states, "get" # !toupper(!substr(state, 0, 1)) # !substr(state, 1) # "()"), ", ") # "}; }\n"
    # "bool keepsZeros() { return " # keepsZeros # "; }";
}
def NN_SgdUpdateOp : NN_Update<"sgd_update", ["param", "grad", "new_param"], []> {
  let summary = "p - lr * (g + weight_decay * p)";
  let arguments = (ins NN_FloatTensor:$param, NN_FloatTensor:$grad, NN_FloatTensor:$lr, F64Attr:$weight_decay);
  let results = (outs NN_FloatTensor:$new_param);
  let assemblyFormat = "$param `,` $grad `lr` `=` $lr attr-dict `:` type($param) `,` type($lr)";
  let hasVerifier = 1;
}
def NN_MomentumUpdateOp : NN_Update<"momentum_update", ["param", "grad", "velocity", "new_param", "new_velocity"], ["velocity"]> {
  let summary = "SGD with momentum: v' = momentum * v + g + weight_decay * p; p' = p - lr * v'";
  let description = "With `nesterov`, p' = p - lr * (g + weight_decay * p + momentum * v'): the gradient as if seen after the next step (Sutskever et al. 2013).";
  let arguments = (ins NN_FloatTensor:$param, NN_FloatTensor:$grad, NN_FloatTensor:$velocity, NN_FloatTensor:$lr, F64Attr:$momentum, F64Attr:$weight_decay,
                       UnitAttr:$nesterov);
  let results = (outs NN_FloatTensor:$new_param, NN_FloatTensor:$new_velocity);
  let assemblyFormat = "$param `,` $grad `,` $velocity `lr` `=` $lr attr-dict `:` type($param) `,` type($lr)";
  let hasVerifier = 1;
}
// Without epsilon it divides 0 by 0.
def NN_AdamUpdateOp : NN_Update<"adam_update", ["param", "grad", "m", "v", "new_param", "new_m", "new_v"], ["m", "v"],
                                /*keepsZeros=*/"!getEps().isZero()"> {
  let summary = "Adam; with `decoupled`, AdamW";
  let description = [{
    Step t is 1 for the first update. g' = g + weight_decay * p (Adam); m' = beta1*m + (1-beta1)*g'; v' = beta2*v + (1-beta2)*g'^2;
    p' = p - lr * ((m'/(1-beta1^t)) / (sqrt(v'/(1-beta2^t)) + eps)), and for AdamW also - lr * weight_decay * p (of the old p).
    Kingma & Ba 2015; Loshchilov & Hutter 2019.
  }];
  let arguments = (ins NN_FloatTensor:$param, NN_FloatTensor:$grad, NN_FloatTensor:$m, NN_FloatTensor:$v, NN_FloatTensor:$lr, NN_IndexScalar:$step,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay, UnitAttr:$decoupled);
  let results = (outs NN_FloatTensor:$new_param, NN_FloatTensor:$new_m, NN_FloatTensor:$new_v);
  let assemblyFormat = "$param `,` $grad `,` $m `,` $v `lr` `=` $lr `step` `=` $step attr-dict `:` type($param) `,` type($lr)";
  let hasVerifier = 1;
}

include "NNAttentionOps.td"
include "NNRandomOps.td"
include "NNNormOps.td"
include "NNRopeOps.td"
include "NNSequenceOps.td"

#endif
