// Registration of the `nn` dialect, and the rules of a model's arguments and results: each has one
// role, names are unique, and an updated argument keeps its type.
#include "ArgRoles.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/MadeByPasses.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/Names.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shoal::nn;

#include "shoal/Dialect/NN/NNDialect.cpp.inc"

static_assert(std::string_view(NNDialect::kLayerAttr) == std::string_view(shoal::origin::kLayer) &&
              std::string_view(NNDialect::kRecomputeAttr) == std::string_view(shoal::origin::kRecompute));

/// What only passes write at L1.
static constexpr shoal::Made kMade[] = {
    {NNDialect::kMasterAttr, "nn-mixed-precision"}, {NNDialect::kStateAttr, "nn-optimize"},
    {NNDialect::kGradAttr, "nn-differentiate"},     {NNDialect::kRecomputeAttr, "nn-recompute"},
    {kEvaluationAttr, "nn-select-results"},         {kBatchDimAttr, "nn-explicit-counts"},
    {kBatchRowsAttr, "dist-microbatch"},
};

void NNDialect::initialize() {
  registerAttributes();
  addInterface<shoal::MadeByPasses>(llvm::ArrayRef(kMade));
  addOperations<
#define GET_OP_LIST
#include "shoal/Dialect/NN/NNOps.cpp.inc"
      >();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getShapedType() != type)
    return nullptr;
  return builder.create<ConstantOp>(loc, type, elements);
}

static bool isIndexScalar(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 0 && tensor.getElementType().isInteger(64);
}

/// What the ops compute on and the runtime stores; params and losses are floats.
static bool isElementType(Type type) {
  return isa<Float32Type, Float64Type, BFloat16Type>(type) || type.isSignlessInteger(1) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

/// Begins an error about an argument or a result.
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// A name under which a value is read, written or reported.
static LogicalResult verifyName(Operation *op, EmitError emitError, StringRef attribute, StringRef name) {
  StringRef rule = shoal::brokenNameRule(name);
  bool onCommandLine = attribute == NNDialect::kInputAttr || attribute == NNDialect::kOutputAttr;
  if (rule.empty() && onCommandLine && name.contains('='))
    rule = "hold no '=', since the command line reads NAME=FILE";
  if (rule.empty())
    rule = brokenReservation(NameScope::Anywhere, attribute, name);
  if (rule.empty() && !op->hasAttr(kEvaluationAttr))
    rule = brokenReservation(NameScope::OutsideEvaluations, attribute, name);
  if (rule.empty())
    return success();
  return emitError() << "'" << attribute << "' name must " << rule << ", got: "
                     << StringAttr::get(op->getContext(), name);
}

/// Names are checked once per function, when its first argument with a role is reached.
static LogicalResult verifyArgNames(FunctionOpInterface func, unsigned first) {
  llvm::StringMap<unsigned> seen;
  for (unsigned i = first; i < func.getNumArguments(); ++i) {
    StringRef name = getArgName(func, i);
    if (name.empty())
      continue;
    auto [it, inserted] = seen.try_emplace(name, i);
    if (!inserted) {
      InFlightDiagnostic diag = emitArgError(func, i) << "argument names must be unique, got: that of argument "
                                                      << it->second;
      diag.attachNote(getArgLoc(func, it->second)) << "argument " << it->second << " is here";
      return diag;
    }
  }
  return success();
}

static LogicalResult verifyIndices(FunctionOpInterface func, unsigned index, Attribute value) {
  if (!isa<IndicesAttr>(value))
    return emitArgError(func, index) << "'" << NNDialect::kIndicesAttr << "' must be #nn.indices, got: " << value;
  auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[index]);
  bool isInput = func.getArgAttr(index, NNDialect::kInputAttr) != nullptr;
  if (!isInput || !type || !(type.getElementType().isInteger(32) || type.getElementType().isInteger(64)))
    return emitArgError(func, index) << "'" << NNDialect::kIndicesAttr << "' belongs to an input of i32 or i64, got: "
                                     << (isInput ? "" : "no input, ") << func.getArgumentTypes()[index];
  return success();
}

static LogicalResult verifyMaster(FunctionOpInterface func, unsigned index, Attribute value) {
  Type type = func.getArgumentTypes()[index];
  if (isa<UnitAttr>(value) && func.getArgAttr(index, NNDialect::kParamAttr) && getElementTypeOrSelf(type).isF32())
    return success();
  return emitArgError(func, index) << "'" << NNDialect::kMasterAttr
                                   << "' is a unit attribute of a parameter of f32, got: "
                                   << (isa<UnitAttr>(value) ? "" : "a value, ") << type;
}

/// `[micro-batch, row, ...]` of an input that is whole; of a shard the rank program's argument is checked.
static LogicalResult verifyBatchRows(FunctionOpInterface func, unsigned index, Attribute value) {
  auto rows = dyn_cast<IntegerAttr>(value);
  auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[index]);
  if (!rows || !rows.getType().isInteger(64) || rows.getInt() < 1 || !isBatchedInput(func, index) || !type ||
      type.getRank() < 2 || type.getDimSize(0) < 1)
    return emitArgError(func, index) << "'" << kBatchRowsAttr
                                     << "' is the i64 number of rows of a batched input [micro-batch, row, ...], got: "
                                     << value << " of " << func.getArgumentTypes()[index];
  if (!func.getArgAttr(index, "dist.global") &&
      type.getDimSize(1) != shoal::shardSize(rows.getInt(), type.getDimSize(0)))
    return emitArgError(func, index) << "a micro-batch of " << rows.getInt() << " rows in " << type.getDimSize(0)
                                     << " has " << shoal::shardSize(rows.getInt(), type.getDimSize(0))
                                     << ", got: " << type;
  return success();
}

LogicalResult NNDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argIndex,
                                                  NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitOpError() << "'" << name << "' belongs to arguments of functions";
  if (name == kBatchRowsAttr)
    return verifyBatchRows(func, argIndex, value);
  if (name == kIndicesAttr)
    return verifyIndices(func, argIndex, value);
  if (name == kMasterAttr)
    return verifyMaster(func, argIndex, value);
  if (getArgRole(name) == ArgRole::None)
    return emitArgError(func, argIndex) << "unknown argument attribute '" << name << "'";

  unsigned roles = llvm::count_if(func.getArgAttrs(argIndex),
                                  [](NamedAttribute attr) { return getArgRole(attr.getName()) != ArgRole::None; });
  if (roles != 1)
    return emitArgError(func, argIndex) << "must have one role, got: " << roles;

  Type type = func.getArgumentTypes()[argIndex];
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return emitArgError(func, argIndex) << "'" << name << "' needs a tensor of static shape, got: " << type;

  if (!isElementType(tensor.getElementType()))
    return emitArgError(func, argIndex) << "'" << name << "' needs elements of f32, f64, bf16, i32, i64 or "
                                        << "i1, got: " << type;
  if (name == kStepAttr || name == kValidRowsAttr || name == kSeedAttr) {
    if (!isa<UnitAttr>(value))
      return emitArgError(func, argIndex) << "'" << name << "' takes no value, got: " << value;
    if (!isIndexScalar(type))
      return emitArgError(func, argIndex) << "'" << name << "' needs tensor<i64>, got: " << type;
  } else if (name == kInputAttr) {
    if (!isa<StringAttr, InputAttr>(value))
      return emitArgError(func, argIndex) << "'" << name << "' must be a string or #nn.input, got: " << value;
  } else if (name == kParamAttr) {
    if (!isa<ParamAttr>(value))
      return emitArgError(func, argIndex) << "'" << name << "' must be #nn.param, got: " << value;
    if (!isa<Float32Type, Float64Type, BFloat16Type>(tensor.getElementType()))
      return emitArgError(func, argIndex) << "a parameter must be f32, f64 or bf16, got: " << type;
    // A shard has fewer elements; there the rank program's arguments are checked, which know the whole.
    auto file = cast<ParamAttr>(value).getFile();
    if (file && !func.getArgAttr(argIndex, "dist.global") && !holdsAsMany(file, tensor))
      return emitArgError(func, argIndex) << "the shape in files must have as many elements as " << type
                                          << ", got: [" << file.asArrayRef() << "]";
  } else if (name == kBufferAttr) {
    if (!isa<BufferAttr>(value))
      return emitArgError(func, argIndex) << "'" << name << "' must be #nn.buffer, got: " << value;
    if (!isa<Float32Type, Float64Type, BFloat16Type>(tensor.getElementType()))
      return emitArgError(func, argIndex) << "a buffer must be f32, f64 or bf16, got: " << type;
  } else if (!isa<StateAttr>(value)) {
    return emitArgError(func, argIndex) << "'" << name << "' must be #nn.state, got: " << value;
  }
  if (failed(verifyName(op, [&] { return emitArgError(func, argIndex); }, name, getArgName(func, argIndex))))
    return failure();

  for (unsigned i = 0; i < argIndex; ++i)
    if (getArgRole(func, i) != ArgRole::None)
      return success();
  return verifyArgNames(func, argIndex);
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kLayerAttr) {
    auto layer = dyn_cast<StringAttr>(value);
    if (!layer)
      return op->emitOpError() << "'" << name << "' must be a name, got: " << value;
    if (StringRef rule = brokenNameRule(layer); !rule.empty())
      return op->emitOpError() << "'" << name << "' must " << rule << ", got: " << value;
    return success();
  }
  if (name == kRecomputeAttr) {
    if (isa<FunctionOpInterface>(op) || !isa<UnitAttr>(value))
      return op->emitOpError() << "'" << name << "' is a unit attribute of ops in a model, got: " << value;
    return success();
  }
  if (name == kEvaluationAttr) {
    if (!isa<FunctionOpInterface>(op) || !isa<UnitAttr>(value))
      return op->emitOpError() << "'" << name << "' is a unit attribute of functions, got: " << value;
    return success();
  }
  return op->emitOpError() << "unknown attribute '" << name << "', the nn dialect knows on ops: " << kLayerAttr
                           << ", " << kRecomputeAttr << ", and on functions: " << kEvaluationAttr;
}

/// Every `nn.updates` names an argument of the same type, and none is named twice.
static LogicalResult verifyUpdates(FunctionOpInterface func) {
  llvm::StringMap<unsigned> args;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    ArgRole role = getArgRole(func, i);
    if (isUpdatable(role))
      args[getArgName(func, i)] = i;
  }
  llvm::StringMap<unsigned> updated;
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    auto name = func.getResultAttrOfType<StringAttr>(i, NNDialect::kUpdatesAttr);
    if (!name)
      continue;
    auto arg = args.find(name.getValue());
    if (arg == args.end())
      return emitResultError(func, i) << "updates an unknown argument: " << name;
    Type argType = func.getArgumentTypes()[arg->second], resultType = func.getResultTypes()[i];
    if (argType != resultType) {
      InFlightDiagnostic diag = emitResultError(func, i) << "must have the type of the argument it updates, "
                                                         << argType << ", got: " << resultType;
      diag.attachNote(getArgLoc(func, arg->second)) << "argument " << arg->second << " is here";
      return diag;
    }
    if (!updated.try_emplace(name.getValue(), i).second)
      return emitArgError(func, arg->second) << "is updated by results " << updated[name.getValue()] << " and " << i;
  }
  return success();
}

static bool isResultName(StringRef attr) {
  return llvm::any_of(kResultRoles,
                      [&](ResultRole role) { return role != ResultRole::Loss && attr == getRoleAttr(role); });
}

/// No two results have one name in one role. Checked once per function as well, when the first
/// result with a name is reached.
static LogicalResult verifyResultNames(FunctionOpInterface func) {
  llvm::DenseMap<std::pair<Attribute, Attribute>, unsigned> seen; // role and name
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    for (NamedAttribute attr : func.getResultAttrs(i)) {
      StringRef role = attr.getName();
      if (!isResultName(role) || role == NNDialect::kUpdatesAttr)
        continue;
      auto [it, inserted] = seen.try_emplace({attr.getName(), attr.getValue()}, i);
      if (!inserted)
        return emitResultError(func, i) << "'" << role << "' names must be unique, got: that of result " << it->second;
    }
  return verifyUpdates(func);
}

LogicalResult NNDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned resultIndex,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitOpError() << "'" << name << "' belongs to results of functions";
  Type type = func.getResultTypes()[resultIndex];
  auto tensor = dyn_cast<RankedTensorType>(type);

  if (name == kLossAttr) {
    if (!isa<UnitAttr>(value))
      return emitResultError(func, resultIndex) << "'" << name << "' takes no value, got: " << value;
    for (unsigned i = 0; i < resultIndex; ++i)
      if (func.getResultAttr(i, kLossAttr))
        return emitResultError(func, resultIndex) << "one result is the loss, got: result " << i << ", too";
  } else if (isResultName(name)) {
    auto text = dyn_cast<StringAttr>(value);
    if (!text)
      return emitResultError(func, resultIndex) << "'" << name << "' must be a name, got: " << value;
    if (failed(verifyName(op, [&] { return emitResultError(func, resultIndex); }, name, text)))
      return failure();
    if (tensor && !isElementType(tensor.getElementType()))
      return emitResultError(func, resultIndex) << "'" << name << "' needs elements of f32, f64, bf16, i32, i64 or "
                               << "i1, got: " << type;
  } else if (name == kBatchDimAttr) {
    auto dim = dyn_cast<IntegerAttr>(value);
    if (!dim || !tensor || dim.getValue().uge(tensor.getRank()))
      return emitResultError(func, resultIndex) << "'" << name << "' must be a dimension of " << type
                               << ", got: " << value;
  } else {
    return emitResultError(func, resultIndex) << "unknown result attribute '" << name << "'";
  }

  bool needsScalar = name == kLossAttr || name == kMetricAttr;
  if (needsScalar && (!tensor || tensor.getRank() != 0 || !isa<FloatType>(tensor.getElementType())))
    return emitResultError(func, resultIndex) << "'" << name << "' needs a scalar float tensor, got: " << type;
  if (!isResultName(name))
    return success();
  for (unsigned i = 0; i < resultIndex; ++i)
    for (NamedAttribute attr : func.getResultAttrs(i))
      if (isResultName(attr.getName()))
        return success();
  return verifyResultNames(func);
}
