// Reads the `nn.*` attributes of a model's arguments and results.
#include "ArgRoles.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Dialect/NN/IR/Updates.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shoal::nn {

/// The attributes of arguments that say a role, and the names of those that have no value to say one.
static constexpr struct {
  StringLiteral attr;
  ArgRole role;
  StringLiteral name;
} kArgRoles[] = {
    {NNDialect::kInputAttr, ArgRole::Input, ""},
    {NNDialect::kParamAttr, ArgRole::Param, ""},
    {NNDialect::kBufferAttr, ArgRole::Buffer, ""},
    {NNDialect::kStateAttr, ArgRole::State, ""},
    {NNDialect::kStepAttr, ArgRole::Step, kStepName},
    {NNDialect::kValidRowsAttr, ArgRole::ValidRows, kValidRowsName},
    {NNDialect::kSeedAttr, ArgRole::Seed, kSeedName},
};

ArgRole getArgRole(StringRef attr) {
  for (const auto &known : kArgRoles)
    if (attr == known.attr)
      return known.role;
  return ArgRole::None;
}

ArgRole getArgRole(FunctionOpInterface func, unsigned index) {
  for (NamedAttribute attr : func.getArgAttrs(index))
    if (ArgRole role = getArgRole(attr.getName()); role != ArgRole::None)
      return role;
  return ArgRole::None;
}

StringRef getRoleAttr(ResultRole role) {
  switch (role) {
  case ResultRole::Loss:
    return NNDialect::kLossAttr;
  case ResultRole::Metric:
    return NNDialect::kMetricAttr;
  case ResultRole::Output:
    return NNDialect::kOutputAttr;
  case ResultRole::Grad:
    return NNDialect::kGradAttr;
  case ResultRole::Updates:
    return NNDialect::kUpdatesAttr;
  }
  llvm_unreachable("every role is listed");
}

SmallVector<NamedRole, 1> getResultRoles(FunctionOpInterface func, unsigned index) {
  SmallVector<NamedRole, 1> roles;
  for (ResultRole role : kResultRoles)
    if (Attribute attr = func.getResultAttr(index, getRoleAttr(role))) {
      auto name = dyn_cast<StringAttr>(attr);
      roles.push_back({role, name ? name.getValue() : "loss"});
    }
  return roles;
}

StringRef getArgName(FunctionOpInterface func, unsigned index) {
  for (NamedAttribute attr : func.getArgAttrs(index))
    for (const auto &known : kArgRoles) {
      if (attr.getName() != known.attr)
        continue;
      if (!known.name.empty())
        return known.name;
      auto nameOf = [](auto value) { return value.getName().getValue(); };
      // A value of another kind is for the verifier, which calls the argument by its number.
      return llvm::TypeSwitch<Attribute, StringRef>(attr.getValue())
          .Case([](StringAttr text) { return text.getValue(); })
          .Case<InputAttr, ParamAttr, BufferAttr, StateAttr>(nameOf)
          .Default(StringRef());
    }
  return {};
}

std::optional<ArrayRef<int64_t>> getFileShape(FunctionOpInterface func, unsigned index) {
  auto param = func.getArgAttrOfType<ParamAttr>(index, NNDialect::kParamAttr);
  if (!param || !param.getFile())
    return std::nullopt;
  return param.getFile().asArrayRef();
}

bool holdsAsMany(DenseI64ArrayAttr shape, RankedTensorType type) {
  int64_t elements = 1;
  for (int64_t size : shape.asArrayRef())
    if (llvm::MulOverflow(elements, size, elements))
      return false;
  return elements == type.getNumElements();
}

std::optional<IndexRange> getIndexRange(FunctionOpInterface func, unsigned index) {
  auto indices = func.getArgAttrOfType<IndicesAttr>(index, NNDialect::kIndicesAttr);
  return indices ? std::optional(IndexRange{indices.getSize(), indices.getIgnored()}) : std::nullopt;
}

bool isBatchedInput(FunctionOpInterface func, unsigned index) {
  Attribute attr = func.getArgAttr(index, NNDialect::kInputAttr);
  auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[index]);
  if (!attr || !type || type.getRank() == 0)
    return false;
  auto input = dyn_cast<InputAttr>(attr);
  return !input || input.getBatched();
}

bool hasBatchedInput(FunctionOpInterface func) {
  return llvm::any_of(llvm::seq(func.getNumArguments()), [&](unsigned i) { return isBatchedInput(func, i); });
}

FailureOr<int64_t> getBatchRows(FunctionOpInterface func, function_ref<RankedTensorType(unsigned)> wholeType) {
  std::optional<unsigned> first;
  int64_t rows = 0;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    if (!isBatchedInput(func, i))
      continue;
    auto split = func.getArgAttrOfType<IntegerAttr>(i, kBatchRowsAttr);
    auto type = wholeType ? wholeType(i) : cast<RankedTensorType>(func.getArgumentTypes()[i]);
    int64_t held = split ? split.getInt() : type.getDimSize(0);
    if (first && held != rows)
      return emitArgError(func, i) << "batched inputs must have one number of rows, got: " << rows << " in \""
                                   << getArgName(func, *first) << "\" and " << held << " here";
    first = first.value_or(i);
    rows = held;
  }
  if (first && rows < 1)
    return emitArgError(func, *first) << "a batch must have at least 1 row, got: " << rows;
  return rows;
}

std::optional<InitialValue> getInitialValue(Attribute role) {
  if (auto state = dyn_cast_or_null<StateAttr>(role))
    return InitialValue{Init::constant, state.getInit().convertToDouble()};
  if (auto buffer = dyn_cast_or_null<BufferAttr>(role))
    return InitialValue{Init::constant, buffer.getInit().convertToDouble()};
  auto param = dyn_cast_or_null<ParamAttr>(role);
  if (!param)
    return std::nullopt;
  if (param.getInit() == Init::zeros || param.getInit() == Init::ones)
    return InitialValue{Init::constant, param.getInit() == Init::ones ? 1.0 : 0.0};
  return InitialValue{param.getInit(), param.getA().convertToDouble(), param.getB().convertToDouble()};
}

std::optional<InitialValue> getInitialValue(FunctionOpInterface func, unsigned index) {
  for (StringRef name : {NNDialect::kParamAttr, NNDialect::kBufferAttr, NNDialect::kStateAttr})
    if (std::optional<InitialValue> value = getInitialValue(func.getArgAttr(index, name)))
      return value;
  return std::nullopt;
}

ArgTable::ArgTable(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (StringRef name = getArgName(func, i); !name.empty())
      indices.try_emplace(name, i);
}

std::optional<unsigned> ArgTable::find(StringRef name) const {
  auto it = indices.find(name);
  return it == indices.end() ? std::nullopt : std::optional(it->second);
}

SmallVector<std::optional<unsigned>> updatedArguments(FunctionOpInterface func) {
  ArgTable arguments(func);
  SmallVector<std::optional<unsigned>> updated(func.getNumResults());
  for (unsigned i = 0; i < updated.size(); ++i)
    if (auto name = func.getResultAttrOfType<StringAttr>(i, NNDialect::kUpdatesAttr))
      updated[i] = arguments.find(name.getValue());
  return updated;
}

std::optional<unsigned> findArg(FunctionOpInterface func, ArgRole role) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (getArgRole(func, i) == role)
      return i;
  return std::nullopt;
}

bool hasGradient(FunctionOpInterface func) {
  return llvm::any_of(llvm::seq(func.getNumResults()),
                      [&](unsigned result) { return func.getResultAttr(result, NNDialect::kGradAttr) != nullptr; });
}

std::optional<unsigned> findLoss(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (func.getResultAttr(i, NNDialect::kLossAttr))
      return i;
  return std::nullopt;
}

bool isModel(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (getArgRole(func, i) != ArgRole::None)
      return true;
  return findLoss(func).has_value();
}

} // namespace shoal::nn
