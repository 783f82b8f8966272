// A graph whose nodes are the ways that messages take, from one position to another, joined where one op has several.
// Those that meet at a position are neighbours, and neighbours get different streams: the first that is free, in the
// order of the program, as few positions are neighbours of many.
#include "MessageStreams.h"

#include "Peers.h"

#include "shoal/Dialect/Dist/IR/Messages.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::exec {

namespace {

using Way = std::pair<int64_t, int64_t>; // from, to

class StreamFinder {
public:
  StreamFinder(func::FuncOp step, dist::MeshAttr mesh) : step(step), mesh(mesh) {}

  FailureOr<MessageStreams> run(int64_t first);

private:
  FailureOr<SmallVector<Way>> getWays(Operation *op);

  func::FuncOp step;
  dist::MeshAttr mesh;
  llvm::EquivalenceClasses<Way> joined;
};

} // namespace

FailureOr<SmallVector<Way>> StreamFinder::getWays(Operation *op) {
  auto send = dyn_cast<dist::SendOp>(op);
  Value peer = send ? send.getPeer() : cast<dist::RecvOp>(op).getPeer();
  FailureOr<SmallVector<int64_t>> peers =
      evaluatePeers(op, peer, cast<dist::CollectiveOpInterface>(op).getAxesAttr().getAxes(), mesh);
  if (failed(peers))
    return failure();
  SmallVector<Way> ways;
  for (auto [position, other] : llvm::enumerate(*peers))
    if (other >= 0)
      ways.push_back(send ? Way(position, other) : Way(other, position));
  return ways;
}

FailureOr<MessageStreams> StreamFinder::run(int64_t first) {
  SmallVector<std::pair<Operation *, Way>> messages;
  bool isBad = false;
  step.walk([&](Operation *op) {
    if (!isa<dist::SendOp, dist::RecvOp>(op) || !op->hasAttr(dist::kAsyncAttr))
      return;
    FailureOr<SmallVector<Way>> ways = getWays(op);
    if (failed(ways) || ways->empty()) {
      isBad |= failed(ways);
      return;
    }
    for (Way way : *ways)
      joined.unionSets(ways->front(), way);
    messages.push_back({op, ways->front()});
  });
  if (isBad)
    return failure();

  llvm::MapVector<Way, int64_t> streams; // by leader
  for (auto &[op, way] : messages)
    streams.insert({joined.getLeaderValue(way), -1});
  DenseMap<int64_t, SmallVector<int64_t, 4>> taken; // by position
  for (auto &[leader, stream] : streams) {
    auto members = llvm::make_range(joined.member_begin(joined.findValue(leader)), joined.member_end());
    auto isTaken = [&](int64_t number) {
      return llvm::any_of(members, [&](Way way) {
        return llvm::is_contained(taken[way.first], number) || llvm::is_contained(taken[way.second], number);
      });
    };
    for (stream = first; isTaken(stream);)
      ++stream;
    for (Way way : members) {
      taken[way.first].push_back(stream);
      taken[way.second].push_back(stream);
    }
  }
  MessageStreams result;
  for (auto &[op, way] : messages)
    result[op] = streams.lookup(joined.getLeaderValue(way));
  return result;
}

FailureOr<MessageStreams> findMessageStreams(func::FuncOp step, dist::MeshAttr mesh, int64_t first) {
  return StreamFinder(step, mesh).run(first);
}

} // namespace shoal::exec
