// Collectives as traffic.h counts them.
#include "Traffic.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::dist {

Traffic trafficOf(Operation *op, int64_t ranks) {
  auto count = [](Value value) { return getTensorType(value).getNumElements(); };
  auto permute = [&](auto pairs) -> Traffic {
    return {rt::Opcode::Permute, count(pairs.getInput()), std::nullopt, pairs.getSources() != pairs.getTargets()};
  };
  return llvm::TypeSwitch<Operation *, Traffic>(op)
      .Case([&](AllReduceOp reduce) -> Traffic { return {rt::Opcode::AllReduce, count(reduce.getInput())}; })
      .Case([&](AllGatherOp gather) -> Traffic { return {rt::Opcode::AllGather, ranks * count(gather.getInput())}; })
      .Case([&](ReduceScatterOp scatter) -> Traffic {
        return {rt::Opcode::ReduceScatter, ranks * count(scatter.getResult())};
      })
      .Case([&](AllToAllOp exchange) -> Traffic {
        // The dimension that is split is padded to equal parts.
        int64_t whole = getTensorType(exchange.getInput()).getDimSize(exchange.getSplit());
        int64_t part = getTensorType(exchange.getResult()).getDimSize(exchange.getSplit());
        int64_t others = whole ? count(exchange.getInput()) / whole : 0;
        return {rt::Opcode::AllToAll, others * ranks * part};
      })
      .Case([&](BroadcastOp root) -> Traffic {
        return {rt::Opcode::Broadcast, count(root.getInput()), root.getRoot()};
      })
      .Case([&](ScatterOp root) -> Traffic { return {rt::Opcode::Scatter, count(root.getInput()), root.getRoot()}; })
      .Case([&](GatherOp root) -> Traffic { return {rt::Opcode::Gather, count(root.getResult()), root.getRoot()}; })
      .Case<CollectivePermuteOp, PermuteStartOp>(permute)
      .Case([&](SendOp send) -> Traffic { return {rt::Opcode::PointToPoint, count(send.getInput())}; })
      .Default(Traffic());
}

uint64_t sentBytes(const Traffic &traffic, int64_t ranks, int64_t bytes) {
  if (traffic.opcode == rt::Opcode::Permute || traffic.opcode == rt::Opcode::PointToPoint)
    return rt::sentBytes(traffic.opcode, traffic.leavesRank ? 2 : 1, 0, 0, traffic.elements, bytes);
  uint64_t most = 0;
  for (int64_t position = 0; position < (traffic.root ? ranks : 1); ++position)
    most = std::max(most, rt::sentBytes(traffic.opcode, ranks, position, traffic.root.value_or(0), traffic.elements,
                                        bytes));
  return most;
}

} // namespace shoal::dist
