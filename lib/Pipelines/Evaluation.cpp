// The evaluation step is compiled from the same model as the training step, by the same pipelines, and
// joins it before kernels are outlined.
#include "shoal/Pipelines/Pipelines.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/SplitAxis.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"
#include "shoal/Dialect/Pipe/Transforms/KeptRanks.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace shoal {

LogicalResult adoptShardings(ModuleOp evaluation, ModuleOp training) {
  // Tensor parallelism may have split an axis: what annotations by hand name is split here, too.
  if (failed(dist::splitAxesAs(evaluation, dist::lookupMesh(training).getMesh())))
    return failure();
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source)
      continue;
    llvm::StringMap<unsigned> arguments;
    for (unsigned i = 0; i < source.getNumArguments(); ++i)
      arguments[nn::getArgName(source, i)] = i;
    SignatureEdit signature(func);
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto from = arguments.find(nn::getArgName(func, i));
      if (from == arguments.end() || !nn::isUpdatable(nn::getArgRole(func, i)))
        continue;
      // With what brought the axes, so that evaluation's collectives name the same.
      for (StringRef name :
           {dist::DistDialect::kShardingAttr, dist::DistDialect::kFlatAttr, dist::DistDialect::kWhyAttr})
        if (Attribute attr = source.getArgAttr(from->second, name))
          signature.setArgAttr(i, name, attr);
    }
  }
  return success();
}

namespace {

/// The parameters and buffers that an op reads, seen through what a plan puts in front of it: casts, and tokens in
/// another order.
SmallVector<StringAttr> getReads(func::FuncOp func, Operation *op) {
  SmallVector<StringAttr> names;
  for (Value operand : op->getOperands()) {
    while (isa_and_nonnull<nn::CastOp, nn::ZigzagOp>(operand.getDefiningOp()))
      operand = operand.getDefiningOp()->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(operand);
    if (argument && argument.getOwner() == &func.getBody().front() &&
        nn::isUpdatable(nn::getArgRole(func, argument.getArgNumber())))
      names.push_back(StringAttr::get(func.getContext(), nn::getArgName(func, argument.getArgNumber())));
  }
  return names;
}

constexpr size_t kOwnParts = 2; // of a signature: what the op is and its layer, in front of what it reads

/// What an op has in common with its counterpart in another program of the same model.
Attribute getSignature(func::FuncOp func, Operation *op) {
  Builder b(op->getContext());
  SmallVector<Attribute> parts{op->getName().getIdentifier()};
  Attribute layer = op->getAttr(nn::NNDialect::kLayerAttr);
  parts.push_back(layer ? layer : b.getUnitAttr());
  llvm::append_range(parts, getReads(func, op));
  return b.getArrayAttr(parts);
}

/// The stages that give buffers their new values.
llvm::DenseMap<StringAttr, Attribute> findBufferStages(func::FuncOp func) {
  llvm::DenseMap<StringAttr, Attribute> stages;
  for (BlockArgument argument : func.getArguments())
    if (nn::getArgRole(func, argument.getArgNumber()) == nn::ArgRole::Buffer)
      stages[StringAttr::get(func.getContext(), nn::getArgName(func, argument.getArgNumber()))] = {};
  for (auto [index, value] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands()))
    if (auto name = func.getResultAttrOfType<StringAttr>(index, nn::NNDialect::kUpdatesAttr))
      if (auto buffer = stages.find(name); buffer != stages.end() && value.getDefiningOp())
        buffer->second = value.getDefiningOp()->getAttr(pipe::PipeDialect::kStageAttr);
  return stages;
}

/// What a pair of counterparts is worth: one that reads a parameter is sure, and more than any number of others, which
/// may be alike by chance.
uint64_t getWorth(Attribute signature, size_t others) {
  return cast<ArrayAttr>(signature).size() > kOwnParts ? others + 1 : 1;
}

/// The worth of the best common subsequences of what is left of two lists, from `a[i]` and `b[j]` on. A row, of one i,
/// follows from that of i + 1: of all rows there are some, and those in between are computed again when they are asked
/// for, in order, so that the table takes the room of a few hundred rows.
class RestWorths {
public:
  RestWorths(ArrayRef<Attribute> a, ArrayRef<Attribute> b) : a(a), b(b), stride(std::sqrt(a.size()) + 1) {
    Row row(b.size() + 1, 0);
    for (size_t i = a.size();; --i) {
      if (i % stride == 0 || i == a.size())
        kept[i] = row;
      if (i == 0)
        return;
      row = getBefore(i - 1, row);
    }
  }

  uint64_t get(size_t i, size_t j) {
    if (i < first || i >= first + rows.size())
      computeFrom(i);
    return rows[i - first][j];
  }

private:
  using Row = std::vector<uint64_t>;

  Row getBefore(size_t i, const Row &next) const {
    Row row(b.size() + 1, 0);
    for (size_t j = b.size(); j-- > 0;)
      row[j] = a[i] == b[j] ? next[j + 1] + getWorth(a[i], a.size()) : std::max(next[j], row[j + 1]);
    return row;
  }

  /// The rows from i to the next that is kept behind it.
  void computeFrom(size_t i) {
    auto end = i < a.size() ? kept.upper_bound(i) : kept.find(i);
    rows.assign(end->first - i + 1, {});
    rows.back() = end->second;
    first = i;
    for (size_t row = end->first; row-- > i;)
      rows[row - i] = getBefore(row, rows[row - i + 1]);
  }

  ArrayRef<Attribute> a, b;
  size_t stride;
  std::map<size_t, Row> kept; // by i
  std::vector<Row> rows;      // from `first` on
  size_t first = 0;
};

/// Pairs of a best common subsequence, in order.
SmallVector<std::pair<size_t, size_t>> align(ArrayRef<Attribute> a, ArrayRef<Attribute> b) {
  RestWorths best(a, b);
  SmallVector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      pairs.push_back({i++, j++});
      continue;
    }
    uint64_t withoutOther = best.get(i, j + 1), withoutOne = best.get(i + 1, j);
    (withoutOne >= withoutOther ? i : j)++;
  }
  return pairs;
}

} // namespace

void adoptStages(ModuleOp evaluation, ModuleOp training) {
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source || source.isExternal() || func.isExternal())
      continue;
    SmallVector<Operation *> from, to;
    SmallVector<Attribute> fromSignatures, toSignatures;
    DenseSet<Operation *> forward = dist::findModelOps(source);
    source.walk<WalkOrder::PreOrder>([&](Operation *op) { // also in the region over micro-batches
      if (!op->hasAttr(pipe::PipeDialect::kStageAttr) || !forward.contains(op))
        return;
      from.push_back(op);
      fromSignatures.push_back(getSignature(source, op));
    });
    if (from.empty())
      continue;
    for (Operation &op : func.getBody().front().without_terminator()) {
      op.removeAttr(pipe::PipeDialect::kStageAttr);
      to.push_back(&op);
      toSignatures.push_back(getSignature(func, &op));
    }
    for (auto [one, other] : align(fromSignatures, toSignatures))
      to[other]->setAttr(pipe::PipeDialect::kStageAttr, from[one]->getAttr(pipe::PipeDialect::kStageAttr));
    // Buffers, which training only updates, evaluation reads.
    llvm::DenseMap<StringAttr, Attribute> buffers = findBufferStages(source);
    for (Operation *op : to)
      for (StringAttr name : getReads(func, op))
        if (Attribute stage = buffers.lookup(name);
            stage && !isa<nn::CastOp>(op) && !op->hasAttr(pipe::PipeDialect::kStageAttr))
          op->setAttr(pipe::PipeDialect::kStageAttr, stage);
  }
}

void adoptBuckets(ModuleOp evaluation, ModuleOp training) {
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source || !func->hasAttr(nn::kEvaluationAttr))
      continue;
    SmallVector<Attribute> buckets;
    for (unsigned i = 0; i < source.getNumArguments(); ++i)
      if (nn::getArgRole(source, i) == nn::ArgRole::Param && source.getArgAttr(i, dist::DistDialect::kBucketAttr))
        buckets.push_back(source.getArgAttrDict(i));
    if (!buckets.empty())
      func->setAttr(dist::DistDialect::kBucketsAttr, ArrayAttr::get(func.getContext(), buckets));
  }
}

void adoptRanks(ModuleOp evaluation, ModuleOp training) {
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source || !func->hasAttr(nn::kEvaluationAttr))
      continue;
    llvm::StringMap<llvm::BitVector> kept = pipe::findKeptRanks(source);
    SignatureEdit signature(func);
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (auto ranks = kept.find(nn::getArgName(func, i)); ranks != kept.end())
        signature.setArgAttr(i, pipe::PipeDialect::kRanksAttr,
                             DenseI64ArrayAttr::get(func.getContext(),
                                                    llvm::to_vector_of<int64_t>(ranks->second.set_bits())));
  }
}

void addEvaluation(ModuleOp training, ModuleOp evaluation) {
  SymbolTable symbols(training);
  for (auto func : llvm::make_early_inc_range(evaluation.getOps<func::FuncOp>())) {
    if (!func->hasAttr(nn::kEvaluationAttr))
      continue;
    func->remove();
    func.setSymName((func.getSymName() + "_eval").str());
    symbols.insert(func); // at the end, under a name that is free
    return;
  }
}

} // namespace shoal
