#ifndef SHOAL_NN_ATTRS
#define SHOAL_NN_ATTRS

include "NNDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class NN_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::shoal::nn";
  let genSpecializedAttr = 0;
}

def NN_ReduceKind : NN_Enum<"Reduce", "what a reduction computes", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>]>;
def NN_ReduceKindAttr : EnumAttr<NN_Dialect, NN_ReduceKind, "reduce_kind">;

def NN_Predicate : NN_Enum<"Predicate", "comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def NN_PredicateAttr : EnumAttr<NN_Dialect, NN_Predicate, "predicate">;

def NN_LossReduction : NN_Enum<"LossReduction", "how a loss combines its elements", [
    I32EnumAttrCase<"mean", 0>, I32EnumAttrCase<"sum", 1>]>;
def NN_LossReductionAttr : EnumAttr<NN_Dialect, NN_LossReduction, "loss_reduction">;

def NN_GeluForm : NN_Enum<"GeluForm", "how gelu computes the normal distribution function", [
    I32EnumAttrCase<"tanh", 0>, I32EnumAttrCase<"erf", 1>]>;
def NN_GeluFormAttr : EnumAttr<NN_Dialect, NN_GeluForm, "gelu_form">;

def NN_InitKind : NN_Enum<"Init", "how a parameter starts", [
    I32EnumAttrCase<"zeros", 0>, I32EnumAttrCase<"ones", 1>, I32EnumAttrCase<"constant", 2>,
    I32EnumAttrCase<"uniform", 3>, I32EnumAttrCase<"normal", 4>,
    I32EnumAttrCase<"kaiming_uniform", 5>, I32EnumAttrCase<"xavier_uniform", 6>]>;

class NN_Attr<string name, string mn> : AttrDef<NN_Dialect, name> { let mnemonic = mn; }

def NN_InputAttr : NN_Attr<"Input", "input"> {
  let summary = "a data input that is not a plain batched one";
  let description = "`#nn.input<\"positions\", unbatched>`. A batched input is written `nn.input = \"x\"`.";
  let parameters = (ins "::mlir::StringAttr":$name, "bool":$batched);
  let hasCustomAssemblyFormat = 1;
}

def NN_ParamAttr : NN_Attr<"Param", "param"> {
  let summary = "a parameter and its initial distribution";
  let description = [{
    `#nn.param<"w1", init = kaiming_uniform>`, `#nn.param<"g", init = constant(1.0)>`, `init = uniform(-0.1, 0.1)`,
    `init = normal(0.0, 0.02)`. Values are functions of (seed, name, global index), the same under every plan.

    `#nn.param<"c_attn.weight", init = zeros, file = [768, 2304]>` on a tensor<768x3x12x64xf32>: files hold the same elements, row-major,
    in another shape. So a program has heads as dimensions, and a checkpoint its own layout. Which parameters are matrices, and what their rows
    and columns are, is asked of the shape in files as well.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::shoal::nn::Init":$init,
                        "::llvm::APFloat":$a, "::llvm::APFloat":$b, "::mlir::DenseI64ArrayAttr":$file);
  let hasCustomAssemblyFormat = 1;
}

def NN_IndicesAttr : NN_Attr<"Indices", "indices"> {
  let summary = "the integers that an input may hold: those that index a row or a class";
  let description = [{
    `#nn.indices<50257>`: from 0 to 50256; `#nn.indices<50257, ignored = -100>`: that number too, which stands for none. The rank program carries
    it, and the run refuses data outside.
  }];
  let parameters = (ins "int64_t":$size, "::std::optional<int64_t>":$ignored);
  let hasCustomAssemblyFormat = 1;
}

def NN_BufferAttr : NN_Attr<"Buffer", "buffer"> {
  let summary = "what a model keeps beside its parameters: running statistics";
  let description = [{
    `#nn.buffer<"bn1.running_mean", init = 0.0>`: saved and loaded with the parameters, written by the program's own
    `nn.updates`, never by an optimizer (PyTorch's register_buffer).
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::llvm::APFloat":$init);
  let hasCustomAssemblyFormat = 1;
}

def NN_StateAttr : NN_Attr<"State", "state"> {
  let summary = "optimizer state of a parameter";
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::StringAttr":$of, "::llvm::APFloat":$init);
  let hasCustomAssemblyFormat = 1;
}

#endif
