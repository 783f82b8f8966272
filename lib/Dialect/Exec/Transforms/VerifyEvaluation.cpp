// What exec-verify asks of an evaluation program beside a training program: it reads what training keeps
// where training keeps it, and writes none of it.
#include "Evaluation.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace shoal::exec {

/// A message at `argument` that names both values, with the other argument as a note.
template <typename T>
static LogicalResult differs(ArgOp argument, ArgOp other, StringRef what, const T &mine,
                             const T &theirs) {
  auto diag = argument.emitOpError() << "must have the " << what << " of the training program's \""
                                     << other.getName() << "\", " << theirs << ", got: " << mine;
  diag.attachNote(other.getLoc()) << "the training program's is here";
  return diag;
}

static LogicalResult verifyShared(ArgOp argument, ArgOp other) {
  if (argument.getKind() != other.getKind())
    return differs(argument, other, "kind", stringifyArgKind(argument.getKind()),
                   stringifyArgKind(other.getKind()));
  Type type = argument.getResult().getType(), otherType = other.getResult().getType();
  if (type != otherType)
    return differs(argument, other, "local type", type, otherType);
  if (argument.getGlobalAttr() != other.getGlobalAttr())
    return differs(argument, other, "global type", Attribute(argument.getGlobalAttr()),
                   Attribute(other.getGlobalAttr()));
  if (argument.getShardingAttr() != other.getShardingAttr())
    return differs(argument, other, "sharding", Attribute(argument.getShardingAttr()),
                   Attribute(other.getShardingAttr()));
  if (argument.getBucketAttr() != other.getBucketAttr())
    return differs(argument, other, "tensors", Attribute(argument.getBucketAttr()), Attribute(other.getBucketAttr()));
  if (argument.getOffset() != other.getOffset())
    return differs(argument, other, "offset", int64_t(argument.getOffset()),
                   int64_t(other.getOffset()));
  auto positionsOf = [](ArgOp arg) { return arg->getAttrOfType<DenseI64ArrayAttr>(ExecDialect::kAtAttr); };
  DenseI64ArrayAttr mine = positionsOf(argument), theirs = positionsOf(other);
  bool isHeld = !theirs || (mine && std::includes(theirs.asArrayRef().begin(), theirs.asArrayRef().end(),
                                                  mine.asArrayRef().begin(), mine.asArrayRef().end()));
  if (!isHeld) {
    auto diag = argument.emitOpError() << "must be held where the training program holds it, at mesh positions "
                                       << theirs << ", got: ";
    if (mine)
      diag << mine;
    else
      diag << "all";
    diag.attachNote(other.getLoc()) << "the training program's is here";
    return diag;
  }
  return success();
}

LogicalResult verifyEvaluation(Programs pair) {
  llvm::StringMap<ArgOp> kept;
  SmallVector<ArgOp> order; // by offset
  for (auto argument : pair.step.getBody().getOps<ArgOp>())
    if (outlivesStep(argument)) {
      kept[argument.getName()] = argument;
      order.push_back(argument);
    }
  for (auto argument : pair.evaluation.getBody().getOps<ArgOp>()) {
    if (!outlivesStep(argument))
      continue;
    ArgOp other = kept.lookup(argument.getName());
    if (!other)
      return argument.emitOpError() << "is no argument of the training program: \""
                                    << argument.getName() << '"';
    if (failed(verifyShared(argument, other)))
      return failure();
  }

  // Inputs are written by the host, buffers by rows. Of those in one memory, what stands before the last one that
  // begins before the end reaches at most to `upTo`.
  auto placeOf = [](ArgOp argument) {
    return std::pair(getMemory(argument.getResult()), int64_t(argument.getOffset()));
  };
  auto endOf = [](ArgOp argument) {
    return int64_t(argument.getOffset()) + argument.getResult().getType().getNumBytes();
  };
  llvm::stable_sort(order, [&](ArgOp a, ArgOp b) { return placeOf(a) < placeOf(b); });
  SmallVector<std::pair<Memory, int64_t>> begins = llvm::map_to_vector(order, placeOf);
  SmallVector<int64_t> upTo = llvm::map_to_vector(order, endOf);
  for (size_t i = 1; i < order.size(); ++i)
    if (begins[i - 1].first == begins[i].first)
      upTo[i] = std::max(upTo[i], upTo[i - 1]);
  auto leavesAlone = [&](Operation *op, ByteRange written) -> LogicalResult {
    size_t i = llvm::lower_bound(begins, std::pair(written.memory, written.end)) - begins.begin();
    for (; i > 0 && begins[i - 1].first == written.memory && upTo[i - 1] > written.begin; --i) {
      ArgOp argument = order[i - 1];
      int64_t first = begins[i - 1].second, last = endOf(argument);
      if (written.begin >= last || !mayMeet(op, argument))
        continue;
      auto diag = op->emitOpError() << "writes bytes [" << written.begin << ", " << written.end
                                    << ") while training keeps \"" << argument.getName()
                                    << "\" at [" << first << ", " << last << ")";
      diag.attachNote(argument.getLoc()) << "the training program's argument is here";
      return diag;
    }
    return success();
  };
  for (Operation &op : pair.evaluation.getBody().front()) {
    SmallVector<Value> written;
    if (auto argument = dyn_cast<ArgOp>(op); argument && !outlivesStep(argument))
      written.push_back(argument.getResult());
    else if (auto row = dyn_cast<RowOpInterface>(op))
      row.getWrites(written);
    for (Value buffer : written)
      if (failed(leavesAlone(&op, getByteRange(buffer))))
        return failure();
  }
  return success();
}

} // namespace shoal::exec
