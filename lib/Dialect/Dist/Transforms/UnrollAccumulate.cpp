// Copies the body of an accumulate per micro-batch; see UnrollAccumulate.h.
#include "UnrollAccumulate.h"

#include "ForeignAttrs.h"

#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::dist {

/// The terms of a sum that nobody but `reader`, which falls away, reads.
static void collectTerms(Value value, Operation *reader, SmallVectorImpl<Value> &terms) {
  auto sum = value.getDefiningOp<nn::AddOp>();
  auto isOther = [&](Operation *user) { return user != reader; };
  if (!sum || llvm::any_of(sum->getUsers(), isOther) || sum.getLhs().getType() != value.getType() ||
      sum.getRhs().getType() != value.getType())
    return terms.push_back(value);
  // Each is added to what is there, and none to another first; this op falls away.
  collectTerms(sum.getLhs(), sum, terms);
  collectTerms(sum.getRhs(), sum, terms);
}

/// Adds a term to a sum as soon as there are both.
static Value addTerm(Value sum, Value term, Attribute number) {
  OpBuilder b(term.getContext());
  b.setInsertionPointAfterValue(term);
  Operation *made = sum.getDefiningOp();
  if (made && made->getBlock() == b.getInsertionBlock() && !made->isBeforeInBlock(&*b.getInsertionPoint()))
    b.setInsertionPointAfter(made);
  auto add = b.create<nn::AddOp>(term.getLoc(), sum, term);
  if (Operation *def = term.getDefiningOp())
    if (Attribute layer = def->getAttr(nn::NNDialect::kLayerAttr))
      add->setAttr(nn::NNDialect::kLayerAttr, layer);
  // The gradient is the sum; a term is on its way to it.
  if (Operation *def = term.getDefiningOp(); def && def->hasAttr(exec::ExecDialect::kClassAttr))
    setClass(def, exec::StorageClass::workspace);
  add->setAttr(kRunningSumAttr, b.getUnitAttr());
  add->setAttr(kMicrobatchAttr, number);
  return add;
}

/// Adds what a micro-batch yields, term by term as they are made, so that no second sum is held beside the first. Null is the
/// sum before the first micro-batch.
static Value addTerms(Value sum, Value value, Attribute number) {
  SmallVector<Value> terms;
  collectTerms(value, nullptr, terms);
  llvm::stable_sort(terms, [](Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    return first && second && first->getBlock() == second->getBlock() ? first->isBeforeInBlock(second) : !first && second;
  });
  for (Value term : terms)
    sum = sum ? addTerm(sum, term, number) : term;
  return sum;
}

static bool staysInPlaceOp(Operation &op) { return staysInPlace(&op); }

/// Buckets of sums, and their reductions, stood behind the region: they go to where the last micro-batch has made what they
/// read, in their order. A program by hand communicates where it says so.
static void startEarly(ArrayRef<Value> sums, Operation *behind) {
  auto func = dyn_cast<FunctionOpInterface>(behind->getParentOp());
  if (!func || !isMadeByPartitioner(func) || llvm::any_of(*behind->getBlock(), staysInPlaceOp))
    return;
  llvm::SmallDenseSet<Value> early(sums.begin(), sums.end());
  DenseMap<Operation *, Operation *> tails; // what was moved behind an op ends here
  for (Operation *op = behind->getNextNode(), *next; op; op = next) {
    next = op->getNextNode();
    bool reduces = isTensorCollective(op) && op->getOperand(0).getDefiningOp<PackOp>() && !op->hasAttr(DistDialect::kRefetchAttr);
    if (!(isa<nn::ReshapeOp, PackOp>(op) || reduces) || llvm::none_of(op->getOperands(), [&](Value v) { return early.contains(v); }))
      continue;
    Operation *last = nullptr;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && (!last || last->isBeforeInBlock(def)))
        last = def;
    if (!last || !last->isBeforeInBlock(behind))
      continue;
    Operation *&tail = tails.try_emplace(last, last).first->second;
    op->moveAfter(tail);
    tail = op;
    early.insert(op->result_begin(), op->result_end());
  }
}

void unrollAccumulate(AccumulateOp op) {
  OpBuilder b(op);
  Block &body = op.getBody().front();
  SmallVector<Value> sums;
  int64_t groups = 0;
  op->getParentOfType<FunctionOpInterface>().walk([&](PackOp pack) { groups = std::max(groups, int64_t(pack.getGroup()) + 1); });
  int64_t count = op.getMicrobatches();
  for (int64_t micro = 0; micro < count; ++micro) {
    IRMapping mapping;
    Attribute number = b.getI64IntegerAttr(micro);
    for (auto [input, argument] : llvm::zip_equal(op.getInputs(), body.getArguments())) {
      auto type = cast<RankedTensorType>(argument.getType());
      Value part = input;
      if (count > 1) {
        part =
            b.create<nn::SliceOp>(op.getLoc(), type, input, /*dim=*/0, micro * type.getDimSize(0));
        part.getDefiningOp()->setAttr(kMicrobatchAttr, number);
      }
      mapping.map(argument, part);
    }
    for (Operation &inner : body.without_terminator()) {
      Operation *copy = b.clone(inner, mapping);
      if (count > 1)
        copy->setAttr(kMicrobatchAttr, number);
      // Buckets of two micro-batches are two.
      if (auto pack = dyn_cast<PackOp>(copy))
        pack.setGroup(pack.getGroup() + micro * groups);
    }
    for (auto [i, yielded] : llvm::enumerate(body.getTerminator()->getOperands())) {
      Value value = mapping.lookupOrDefault(yielded);
      if (micro == 0)
        sums.emplace_back();
      sums[i] = count > 1 ? addTerms(sums[i], value, number) : value;
    }
  }
  // The sums stand for the op's results.
  if (auto tags = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr); tags && count > 1)
    for (auto [i, sum] : llvm::enumerate(sums))
      sum.getDefiningOp()->setAttr(DistDialect::kGlobalsAttr, b.getArrayAttr({tags[i]}));
  op.replaceAllUsesWith(sums);
  startEarly(sums, op);
  op.erase();
}

} // namespace shoal::dist
