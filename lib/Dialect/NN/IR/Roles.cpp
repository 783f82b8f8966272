// Reads the `nn.*` attributes of a model's arguments and results.
#include "shoal/Dialect/NN/IR/Roles.h"

using namespace mlir;

namespace shoal::nn {

ArgRole getArgRole(FunctionOpInterface func, unsigned index) {
  for (NamedAttribute attr : func.getArgAttrs(index)) {
    StringRef name = attr.getName();
    if (name == NNDialect::kInputAttr)
      return ArgRole::Input;
    if (name == NNDialect::kParamAttr)
      return ArgRole::Param;
    if (name == NNDialect::kBufferAttr)
      return ArgRole::Buffer;
    if (name == NNDialect::kStateAttr)
      return ArgRole::State;
    if (name == NNDialect::kStepAttr)
      return ArgRole::Step;
    if (name == NNDialect::kValidRowsAttr)
      return ArgRole::ValidRows;
  }
  return ArgRole::None;
}

StringRef getArgName(FunctionOpInterface func, unsigned index) {
  for (NamedAttribute attr : func.getArgAttrs(index)) {
    StringRef name = attr.getName();
    Attribute value = attr.getValue();
    if (name == NNDialect::kInputAttr) {
      if (auto text = dyn_cast<StringAttr>(value))
        return text;
      if (auto input = dyn_cast<InputAttr>(value))
        return input.getName();
    }
    if (name == NNDialect::kParamAttr)
      if (auto param = dyn_cast<ParamAttr>(value))
        return param.getName();
    if (name == NNDialect::kBufferAttr)
      if (auto buffer = dyn_cast<BufferAttr>(value))
        return buffer.getName();
    if (name == NNDialect::kStateAttr)
      if (auto state = dyn_cast<StateAttr>(value))
        return state.getName();
    if (name == NNDialect::kStepAttr)
      return "step";
    if (name == NNDialect::kValidRowsAttr)
      return "valid_rows";
  }
  return {};
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

ArgTable::ArgTable(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (StringRef name = getArgName(func, i); !name.empty())
      indices.try_emplace(name, i);
}

std::optional<unsigned> ArgTable::find(StringRef name) const {
  auto it = indices.find(name);
  return it == indices.end() ? std::nullopt : std::optional(it->second);
}

std::optional<unsigned> findArg(FunctionOpInterface func, ArgRole role) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (getArgRole(func, i) == role)
      return i;
  return std::nullopt;
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
