// Joins dimensions by the factors of sharding rules; see DimGroups.h.
#include "DimGroups.h"

#include "FittingRule.h"
#include "OneBlock.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shoal::dist {

void DimGroups::addValue(Value value) {
  RankedTensorType type = getTensorType(value);
  if (type && first.try_emplace(value, numDims).second)
    numDims += type.getRank();
}

FailureOr<DimGroups> DimGroups::build(FunctionOpInterface func) {
  DimGroups groups;
  std::vector<unsigned> mixedDims;
  if (failed(requireReturningBlock(func, "sharded")))
    return failure();
  Block &block = func.getFunctionBody().front();
  for (BlockArgument argument : block.getArguments())
    groups.addValue(argument);
  for (Operation &op : block.without_terminator()) {
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        groups.addValue(operand);
    });
    for (Value result : op.getResults())
      groups.addValue(result);
  }
  groups.classes.grow(groups.numDims);
  for (Operation &op : block.without_terminator()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (ruled && op.getNumRegions() == 0) {
      FailureOr<ShardingRule> rule = getFittingRule(ruled);
      if (failed(rule))
        return failure();
      Entry entry{&op, std::move(*rule), {}};
      groups.join(entry, mixedDims);
      groups.entries.push_back(std::move(entry));
      continue;
    }
    auto mixAll = [&](Value value) {
      if (RankedTensorType type = getTensorType(value))
        for (int64_t d = 0; d < type.getRank(); ++d)
          mixedDims.push_back(groups.first.lookup(value) + d);
    };
    op.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), mixAll); });
    llvm::for_each(op.getResults(), mixAll);
  }
  groups.classes.compress();
  groups.mixed.resize(groups.getNumGroups());
  for (unsigned dim : mixedDims)
    groups.mixed.set(groups.classes[dim]);
  for (Entry &entry : groups.entries)
    for (unsigned &group : entry.groups)
      if (group != kNone)
        group = groups.classes[group];
  return groups;
}

/// Until the classes are compressed, `groups` holds one dimension per factor.
void DimGroups::join(Entry &entry, std::vector<unsigned> &mixedDims) {
  entry.groups.assign(entry.rule.factors.size(), kNone);
  auto visit = [&](Value value, const TensorFactors &tensor) {
    for (auto [d, factors] : llvm::enumerate(tensor)) {
      unsigned dim = first.lookup(value) + d;
      // Factors of size 1 hold nothing to shard, unless the dimension has no other.
      SmallVector<unsigned> large;
      for (unsigned factor : factors)
        if (entry.rule.factors[factor].size != 1)
          large.push_back(factor);
      if (large.empty() && !factors.empty())
        large.push_back(factors.front());
      if (large.size() > 1)
        mixedDims.push_back(dim);
      if (large.size() != 1)
        continue;
      unsigned &known = entry.groups[large.front()];
      if (known == kNone)
        known = dim;
      else
        classes.join(known, dim);
    }
  };
  for (auto [operand, tensor] : llvm::zip_equal(entry.op->getOperands(), entry.rule.operands))
    visit(operand, tensor);
  for (auto [result, tensor] : llvm::zip_equal(entry.op->getResults(), entry.rule.results))
    visit(result, tensor);
}

unsigned DimGroups::find(Value value, unsigned dim) const {
  auto it = first.find(value);
  return it == first.end() ? kNone : classes[it->second + dim];
}

LogicalResult forEachModel(ModuleOp module, function_ref<LogicalResult(func::FuncOp, DimGroups &&)> annotate) {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal() || !nn::isModel(func))
      continue;
    auto groups = DimGroups::build(func);
    if (failed(groups) || failed(annotate(func, std::move(*groups))))
      return failure();
  }
  return success();
}

std::optional<unsigned> findDim(const TensorFactors &tensor, unsigned factor) {
  for (auto [d, factors] : llvm::enumerate(tensor))
    if (llvm::is_contained(factors, factor))
      return d;
  return std::nullopt;
}

bool needsWhole(Operation *op, const Factor &factor) {
  return factor.isReadAnywhere() || (factor.kind == FactorKind::Decompose && !isa<nn::MeanOpInterface>(op));
}

Origins findOrigins(FunctionOpInterface func) {
  Origins origins;
  for (BlockArgument argument : func.getArguments()) {
    nn::ArgRole role = nn::getArgRole(func, argument.getArgNumber());
    if (role == nn::ArgRole::Input)
      origins.inputs.insert(argument);
    if (role == nn::ArgRole::Param)
      origins.parameters.insert(argument);
  }
  for (Operation &op : func.getFunctionBody().front().without_terminator()) {
    auto isOf = [](const DenseSet<Value> &set) { return [&set](Value value) { return set.contains(value); }; };
    bool ofInputs = llvm::any_of(op.getOperands(), isOf(origins.inputs));
    bool ofParameters = op.getNumOperands() && llvm::all_of(op.getOperands(), isOf(origins.parameters));
    for (Value result : op.getResults()) {
      if (ofInputs)
        origins.inputs.insert(result);
      if (ofParameters)
        origins.parameters.insert(result);
    }
  }
  return origins;
}

} // namespace shoal::dist
