// Copies the body of an accumulate per micro-batch; see UnrollAccumulate.h.
#include "UnrollAccumulate.h"

#include "ForeignAttrs.h"
#include "OpOrder.h"

#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::dist {

namespace {

class Unroller {
public:
  Unroller(AccumulateOp op, SmallVectorImpl<AccumulateOp> &nested, int64_t &freeGroup)
      : op(op), count(op.getMicrobatches()), outer(op->getAttrOfType<IntegerAttr>(kMicrobatchAttr)), nested(nested),
        freeGroup(freeGroup) {}

  void run();

private:
  void copyBody(int64_t micro);
  void append(Operation *copy);
  Value addTerm(Value sum, Value term, Attribute number);
  Value addTerms(Value sum, Value value, Attribute number);
  void startEarly();

  /// What ops of a micro-batch have as its number, counted over those around the op, too; null where there is but one.
  IntegerAttr numberOf(int64_t micro) const;

  AccumulateOp op;
  int64_t count;
  IntegerAttr outer; // the micro-batch that the op is in
  SmallVectorImpl<AccumulateOp> &nested;
  int64_t &freeGroup;
  OpOrder order; // what is defined outside is in front of all of it
  Operation *first = nullptr;
  SmallVector<Value> sums;
};

} // namespace

/// The reduction of a bucket, as the partitioner and the packer make it.
static bool reducesBucket(Operation *op) {
  return isTensorCollective(op) && op->getOperand(0).getDefiningOp<PackOp>() && !op->hasAttr(DistDialect::kRefetchAttr);
}

/// Adds a term to a sum as soon as there are both. A term that is reduced is waited for only where the next bucket is
/// full, so that it arrives meanwhile, or at the end of its micro-batch.
Value Unroller::addTerm(Value sum, Value term, Attribute number) {
  OpBuilder b(term.getContext());
  Operation *def = term.getDefiningOp(), *last = order.getLater(sum.getDefiningOp(), def), *tail = order.getTail(last);
  Operation *end = op, *next = tail ? tail->getNextNode() : first ? first : end;
  bool isWaitedFor = def && reducesBucket(def) && !staysInPlace(def);
  while (isWaitedFor && next != end && !reducesBucket(next))
    next = next->getNextNode();
  b.setInsertionPoint(next);
  Operation *add = addToRunningSum(b, sum, term, number);
  if (!isWaitedFor)
    order.putBehind(add, last);
  else if (next != end)
    order.putInFront(add, next);
  else
    append(add);
  if (def)
    copyOrigin(def, add);
  return add->getResult(0);
}

/// Adds what a micro-batch yields, term by term as they are made, so that no second sum is held beside the first. Null
/// is the sum before the first micro-batch.
Value Unroller::addTerms(Value sum, Value value, Attribute number) {
  SmallVector<Value> terms = collectTerms(value);
  llvm::stable_sort(terms, [&](Value a, Value b) { return order.isBefore(a.getDefiningOp(), b.getDefiningOp()); });
  for (Value term : terms)
    sum = sum ? addTerm(sum, term, number) : term;
  return sum;
}

/// Buckets of sums, and their reductions, stood behind the region: they go to where the last micro-batch has made what
/// they read, in their order. A program by hand communicates where it says so.
void Unroller::startEarly() {
  auto func = dyn_cast<FunctionOpInterface>(op->getParentOp());
  auto isFixed = [](Operation &other) { return staysInPlace(&other); };
  if (!func || !isMadeByPartitioner(func) || llvm::any_of(*op->getBlock(), isFixed))
    return;
  llvm::SmallDenseSet<Value> early(sums.begin(), sums.end());
  llvm::SmallPtrSet<Operation *, 32> behind;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
    behind.insert(next);
  for (Operation *mover = op->getNextNode(), *next; mover; mover = next) {
    next = mover->getNextNode();
    if (!(isa<nn::ReshapeOp, PackOp>(mover) || reducesBucket(mover)) ||
        llvm::none_of(mover->getOperands(), [&](Value v) { return early.contains(v); }))
      continue;
    // What reads nothing that stays behind goes to the last that it reads.
    Operation *last = nullptr;
    bool waits = false;
    for (Value operand : mover->getOperands())
      if (Operation *def = operand.getDefiningOp()) {
        waits |= behind.contains(def);
        last = order.getLater(last, def);
      }
    if (!last || waits)
      continue;
    mover->moveAfter(order.getTail(last));
    order.putBehind(mover, last);
    behind.erase(mover);
    early.insert(mover->result_begin(), mover->result_end());
  }
}

IntegerAttr Unroller::numberOf(int64_t micro) const {
  if (count == 1 && !outer)
    return {};
  return Builder(op->getContext()).getI64IntegerAttr((outer ? outer.getInt() : 0) * count + micro);
}

void Unroller::append(Operation *copy) {
  first = first ? first : copy;
  order.append(copy);
}

/// The body on one micro-batch, its sums added to those before.
void Unroller::copyBody(int64_t micro) {
  OpBuilder b(op);
  Block &body = op.getBody().front();
  IRMapping mapping;
  IntegerAttr number = numberOf(micro);
  GroupNumbers groups(freeGroup);
  for (auto [input, argument] : llvm::zip_equal(op.getInputs(), body.getArguments())) {
    auto type = cast<RankedTensorType>(argument.getType());
    Value part = input;
    if (count > 1) {
      part = b.create<nn::SliceOp>(op.getLoc(), type, input, /*dim=*/0, micro * type.getDimSize(0));
      part.getDefiningOp()->setAttr(kMicrobatchAttr, number);
      append(part.getDefiningOp());
    }
    mapping.map(argument, part);
  }
  for (Operation &inner : body.without_terminator()) {
    Operation *copy = b.clone(inner, mapping);
    append(copy);
    if (number)
      copy->setAttr(kMicrobatchAttr, number);
    copy->walk<WalkOrder::PreOrder>([&](AccumulateOp region) {
      nested.push_back(region);
      return WalkResult::skip();
    });
    if (micro > 0)
      groups.renumber(copy);
  }
  for (auto [sum, yielded] : llvm::zip_equal(sums, body.getTerminator()->getOperands())) {
    Value value = mapping.lookupOrDefault(yielded);
    sum = count > 1 ? addTerms(sum, value, number) : value;
  }
}

void Unroller::run() {
  sums.resize(op.getNumResults());
  for (int64_t micro = 0; micro < count; ++micro)
    copyBody(micro);
  // The sums stand for the op's results, each of which is one of a micro-batch around the op.
  auto keepTag = [&](Operation *sum, Attribute tag) {
    sum->setAttr(DistDialect::kGlobalsAttr, ArrayAttr::get(op.getContext(), {tag}));
    if (outer)
      sum->setAttr(kMicrobatchAttr, outer);
  };
  if (auto tags = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr); tags && count > 1)
    for (auto [i, sum] : llvm::enumerate(sums))
      keepTag(sum.getDefiningOp(), tags[i]);
  op.replaceAllUsesWith(sums);
  startEarly();
  op.erase();
}

void unrollAccumulate(AccumulateOp op, SmallVectorImpl<AccumulateOp> &nested, int64_t &freeGroup) {
  Unroller(op, nested, freeGroup).run();
}

} // namespace shoal::dist
