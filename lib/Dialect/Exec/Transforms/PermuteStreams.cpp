// Intervals from start to wait, in the order of the program, each in the first lane of its kind that is free: as many
// lanes as overlap. All positions have the same order, so that ranks meet on every stream.
#include "PermuteStreams.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace shoal::exec {
namespace {

struct Lane {
  std::tuple<Attribute, Attribute, Attribute> pairs; // axes, sources, targets
  unsigned freeAt;                                   // the op from which on nothing of it is in flight
};

} // namespace

llvm::DenseMap<Operation *, int64_t> findPermuteStreams(func::FuncOp step, int64_t first) {
  llvm::DenseMap<Operation *, int64_t> streams;
  llvm::DenseMap<Operation *, unsigned> places;
  Block &block = step.getBody().front();
  for (auto [place, op] : llvm::enumerate(block))
    places[&op] = place;
  SmallVector<Lane> lanes;
  for (auto start : block.getOps<dist::PermuteStartOp>()) {
    unsigned end = places.size();
    for (Operation *user : start.getFuture().getUsers())
      if (auto place = places.find(user); place != places.end())
        end = std::min(end, place->second);
    Lane wanted{{start.getAxes(), start.getSourcesAttr(), start.getTargetsAttr()}, end};
    auto lane = llvm::find_if(
        lanes, [&](const Lane &lane) { return lane.pairs == wanted.pairs && lane.freeAt <= places.lookup(start); });
    if (lane == lanes.end() && lanes.size() == kMaxPermuteStreams) {
      lane = llvm::min_element(lanes, [](const Lane &a, const Lane &b) { return a.freeAt < b.freeAt; });
      wanted.freeAt = std::max(end, lane->freeAt);
    }
    if (lane == lanes.end())
      lane = lanes.insert(lanes.end(), wanted);
    else
      *lane = wanted;
    streams[start] = first + (lane - lanes.begin());
  }
  return streams;
}

} // namespace shoal::exec
