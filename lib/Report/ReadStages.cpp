// Which layers and parameters lie in which stage of a pipeline, by the plan (L1).
#include "shoal/Report/Page.h"

#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/Elements.h"
#include "shoal/Support/FoldedNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace shoal::report {

std::string PageStage::tellLayers(StringRef ellipsis) const {
  std::string text;
  for (size_t begin = 0, end; begin < layers.size(); begin = end) {
    for (end = begin + 1; end < layers.size() && maskNumbers(layers[end]) == maskNumbers(layers[begin]);)
      ++end;
    text += (begin ? ", " : "") + layers[begin];
    if (end - begin > 1)
      text += (end - begin > 2 ? " " + ellipsis.str() + " " : ", ") + layers[end - 1];
  }
  return text;
}

/// The stages that read a value: ops in none, as casts, belong to those that read what they make.
static void findReaders(Value value, llvm::SetVector<int64_t> &stages) {
  SmallVector<Value> work = {value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (Operation *user : next.getUsers())
      if (auto stage = user->getAttrOfType<IntegerAttr>(origin::kStage))
        stages.insert(stage.getInt());
      else
        work.append(user->result_begin(), user->result_end());
  }
}

std::vector<PageStage> readStages(ModuleOp global) {
  std::map<int64_t, PageStage> stages;
  for (auto step : global.getOps<func::FuncOp>()) {
    // Layers end in the order of the forward pass, wherever their constants stand.
    dist::StepParts parts(step);
    llvm::MapVector<std::pair<int64_t, StringAttr>, int64_t> lastForward;
    int64_t number = 0;
    step.walk([&](Operation *op) {
      auto stage = op->getAttrOfType<IntegerAttr>(origin::kStage);
      auto layer = op->getAttrOfType<StringAttr>(origin::kLayer);
      ++number;
      if (stage && layer && parts.get(op) == dist::StepParts::Forward)
        lastForward[{stage.getInt(), layer}] = number;
    });
    auto order = lastForward.takeVector();
    llvm::sort(order, llvm::less_second());
    for (const auto &[key, last] : order)
      stages[key.first].layers.push_back(key.second.str());
    for (BlockArgument argument : step.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || nn::getArgRole(step, argument.getArgNumber()) != nn::ArgRole::Param)
        continue;
      llvm::SetVector<int64_t> readers;
      findReaders(argument, readers);
      for (int64_t stage : readers) {
        PageStage &it = stages[stage];
        ++it.tensors;
        it.parameters += type.getNumElements();
        it.bytes += tensorBytes(type);
      }
    }
  }
  std::vector<PageStage> all;
  for (auto &[stage, it] : stages) {
    it.stage = stage;
    all.push_back(std::move(it));
  }
  return all;
}

} // namespace shoal::report
