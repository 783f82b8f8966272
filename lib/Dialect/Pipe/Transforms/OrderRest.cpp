// When a rank does what follows its part of the schedule. All ranks share one line, of which each runs its own: what a
// rank does behind its last action must not stand behind what others still work on.
#include "PlaceRest.h"

#include "shoal/Dialect/NN/IR/NN.h"

using namespace mlir;

namespace shoal::pipe {

namespace {

class Orderer {
public:
  Orderer(Operation *begin, PipeAxis axis) : begin(begin), block(*begin->getBlock()), axis(axis) {
    for (auto [number, op] : llvm::enumerate(block))
      places[&op] = {number, 0};
  }

  void run();

private:
  struct Slice {
    SmallVector<Operation *> ops; // in order
    Operation *behind;
  };

  /// Kept here: the block would number all its ops anew after each move.
  using Place = std::pair<size_t, size_t>; // of the op behind which it moved, and how many moved before it
  bool isBefore(Operation *a, Operation *b) const { return places.lookup(a) < places.lookup(b); }
  bool crosses(Operation *op) const;
  std::optional<Slice> findSlice(Operation *collective) const;
  void findLevels();
  void startEarly();

  Operation *begin;
  Block &block;
  PipeAxis axis;
  DenseMap<Operation *, Place> places;
  size_t moved = 0;
  SmallVector<Operation *> rest;
  DenseSet<Operation *> late; // of these, what stays behind the schedule
  DenseMap<Operation *, unsigned> levels; // messages and reductions between stages on the way to an op
};

/// What only lays out what a collective takes.
bool laysOut(Operation *op) { return isa<dist::PackOp, nn::ReshapeOp, nn::TransposeOp, nn::CastOp>(op); }

} // namespace

bool Orderer::crosses(Operation *op) const {
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  return collective && collective.communicates() &&
         llvm::is_contained(collective.getAxesAttr().getAxes(), axis.name);
}

void Orderer::findLevels() {
  unsigned sent = 0; // the level of the latest send
  for (Operation *op = begin; op != block.getTerminator(); op = op->getNextNode()) {
    unsigned level = 0;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && levels.contains(def))
          level = std::max(level, levels.lookup(def) + crosses(def));
    });
    // It arrives no earlier than what is sent in front of it.
    if (isa<dist::SendOp>(op))
      sent = level;
    if (isa<dist::RecvOp>(op))
      level = std::max(level, sent);
    levels[op] = level;
    rest.push_back(op);
    late.insert(op);
  }
}

/// What a collective reads in the rest, if all of it only lays out, and the last op in front of it that this reads.
std::optional<Orderer::Slice> Orderer::findSlice(Operation *collective) const {
  Slice slice{{collective}, nullptr};
  for (size_t i = 0; i < slice.ops.size(); ++i)
    for (Value operand : slice.ops[i]->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || llvm::is_contained(slice.ops, def))
        continue;
      if (!late.contains(def))
        slice.behind = !slice.behind || isBefore(slice.behind, def) ? def : slice.behind;
      else if (laysOut(def))
        slice.ops.push_back(def);
      else
        return {};
    }
  if (!slice.behind)
    return {};
  llvm::sort(slice.ops, [&](Operation *a, Operation *b) { return isBefore(a, b); });
  return slice;
}

/// Reductions of gradients over other axes, and what lays their buckets out, start where the last term is added, while
/// the rank still computes.
void Orderer::startEarly() {
  DenseMap<size_t, Operation *> tails; // behind an op that stays, by its place: the last that has moved there
  for (Operation *op : rest) {
    if (!dist::isTensorCollective(op) || crosses(op))
      continue;
    std::optional<Slice> slice = findSlice(op);
    if (!slice)
      continue;
    size_t place = places.lookup(slice->behind).first;
    Operation *&tail = tails.try_emplace(place, slice->behind).first->second;
    for (Operation *mover : slice->ops) {
      mover->moveAfter(tail);
      tail = mover;
      places[mover] = {place, ++moved};
      late.erase(mover);
    }
  }
  llvm::erase_if(rest, [&](Operation *op) { return !late.contains(op); });
}

void Orderer::run() {
  findLevels();
  startEarly();
  llvm::stable_sort(rest, [&](Operation *a, Operation *b) { return levels.lookup(a) < levels.lookup(b); });
  for (Operation *op : rest)
    op->moveBefore(block.getTerminator());
}

void orderRest(Operation *begin, PipeAxis axis) { Orderer(begin, axis).run(); }

} // namespace shoal::pipe
