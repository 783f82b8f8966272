// The compiler's promise of a step: bytes held and sent by every rank, from the program's types and
// the formulas of shoal-rt/traffic.h.
#include "shoal/Codegen/Emit.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Exec/IR/ArenaUse.h"
#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::codegen {

static uint64_t bytesOf(Value buffer) {
  return cast<exec::BufferType>(buffer.getType()).getElementBytes();
}
static uint64_t elementsOf(Value buffer) {
  return cast<exec::BufferType>(buffer.getType()).getNumElements();
}

/// What a rank at a mesh position sends in a row, as one of `ranks` of its group where it has one.
static rt::CollectiveReport measureTraffic(exec::RowOpInterface row, ArrayRef<exec::Message> messages,
                                           dist::MeshAttr mesh, int64_t position) {
  rt::Opcode opcode = row.getOpcode();
  rt::CollectiveReport sent;
  auto isSent = [&](const exec::Message &message) {
    return message.isSend && message.peers[position] >= 0;
  };
  auto endsOf = [&](const exec::Message &message) {
    return message.peers[position] == position ? 1 : 2;
  };
  dist::AxesAttr axes = row.getGroup();
  if (!axes) {
    for (const exec::Message &message : llvm::make_filter_range(messages, isSent)) {
      ++sent.count;
      sent.bytes += rt::sentBytes(opcode, endsOf(message), 0, 0, elementsOf(message.buffer),
                                  bytesOf(message.buffer));
    }
    return sent;
  }
  uint64_t ranks = mesh.getSize(axes.getAxes());
  if (row.getMeeting() == exec::Meeting::Pairs) {
    ranks = 1;
    for (const exec::Message &message : llvm::make_filter_range(messages, isSent))
      ranks = endsOf(message);
  }
  uint64_t along = mesh.getIndexAlong(position, axes.getAxes()), elements = 0, bytes = 1;
  SmallVector<Value> buffers;
  row.getReads(buffers);
  row.getWrites(buffers);
  for (Value buffer : buffers) {
    elements = std::max(elements, elementsOf(buffer));
    bytes = bytesOf(buffer);
  }
  sent.count = 1;
  sent.bytes = rt::sentBytes(opcode, ranks, along, row.getRootPosition().value_or(0), elements, bytes);
  return sent;
}

/// Whether ranks that run a row may send differently in it: by their place in the group, or to whom.
static bool differsByRank(exec::RowOpInterface row) {
  return row.getRootPosition() || row.getMeeting() == exec::Meeting::Pairs;
}

/// What a copy moves from one memory to the other.
static void addTransfer(exec::CopyOp copy, rt::RankReport &rank) {
  exec::Memory to = exec::getMemory(copy.getOutput());
  if (to != exec::getMemory(copy.getInput()))
    rank.addTransfer(exec::stringifyMemory(to).str(), copy.getOutput().getType().getNumBytes());
}

/// What a class of positions sends, asked once per row where all of them send alike. They have the same lines.
static void addTraffic(const exec::PositionClass &at, dist::MeshAttr mesh, ArrayRef<rt::RankReport *> ranks) {
  struct Line {
    rt::CollectiveReport common; // of each rank
    std::vector<uint64_t> own;   // bytes of a rank beside it
  };
  llvm::MapVector<std::pair<unsigned, Attribute>, Line> lines; // by kind and axes
  for (Operation *op : at.steps) {
    auto row = dyn_cast<exec::RowOpInterface>(op);
    if (!row || !rt::isCommunication(row.getOpcode()))
      continue;
    SmallVector<exec::Message> messages;
    row.getMessages(mesh, messages);
    rt::CollectiveReport sent = measureTraffic(row, messages, mesh, at.positions.front());
    if (!sent.count)
      continue;
    Line &line = lines[{unsigned(row.getOpcode()), row.getGroup()}];
    line.common.count += sent.count;
    if (!differsByRank(row)) {
      line.common.bytes += sent.bytes;
      continue;
    }
    line.own.resize(at.positions.size());
    for (auto [own, position] : llvm::zip_equal(line.own, at.positions))
      own += measureTraffic(row, messages, mesh, position).bytes;
  }
  for (auto &[key, line] : lines) {
    auto group = cast_or_null<dist::AxesAttr>(key.second);
    std::vector<std::string> axes = group ? dist::getAxisNames(group) : std::vector<std::string>();
    for (auto [number, rank] : llvm::enumerate(ranks))
      rank->addCollective(rt::collectiveKind(rt::Opcode(key.first)), axes, line.common.count,
                          line.common.bytes + (line.own.empty() ? 0 : line.own[number]));
  }
}

/// What ranks of a class hold; all of them allocate an arena of the same size.
static rt::BytesReport measureBytes(exec::ProgramOp program, const exec::PositionClass &at) {
  exec::BytesAttr bytes = exec::getBytes(program.getContext(), exec::measureMost(at));
  return {uint64_t(bytes.getParams()),      uint64_t(bytes.getGrads()),     uint64_t(bytes.getOptimizer()),
          uint64_t(bytes.getActivations()), uint64_t(bytes.getWorkspace()), uint64_t(program.getArena()),
          uint64_t(program.getHost())};
}

FailureOr<rt::Report> emitReport(ModuleOp module, StringRef plan) {
  FailureOr<exec::Programs> found = exec::findPrograms(module);
  if (failed(found))
    return failure();
  exec::ProgramOp program = found->step;
  rt::Report report;
  report.program = program.getSymName().str();
  report.plan = plan.str();
  dist::MeshOp meshOp = dist::lookupMesh(program);
  dist::MeshAttr mesh = meshOp ? meshOp.getMesh() : dist::MeshAttr();
  int64_t positions = mesh ? mesh.getNumDevices() : 1;
  if (mesh)
    for (dist::MeshAxisAttr axis : mesh.getAxes())
      report.addAxis(axis.getName().str(), axis.getSize());
  report.ranks.resize(positions);
  std::vector<rt::RankReport *> rankAt; // by position
  for (int64_t position = 0; position < positions; ++position) {
    int64_t device =
        mesh && !mesh.getDeviceIds().empty() ? mesh.getDeviceIds()[position] : position;
    rt::RankReport &rank = report.ranks[device];
    rank.rank = device;
    if (mesh)
      for (auto [axis, coordinate] : llvm::zip_equal(mesh.getAxes(), mesh.getCoordinates(position)))
        rank.addCoordinate(axis.getName().str(), axis.getSize(), coordinate);
    rankAt.push_back(&rank);
  }
  exec::PositionClasses classes(program);
  for (const exec::PositionClass &at : classes.get()) {
    rt::BytesReport bytes = measureBytes(program, at);
    SmallVector<rt::RankReport *> ranks;
    for (int64_t position : at.positions) {
      ranks.push_back(rankAt[position]);
      ranks.back()->bytes = bytes;
    }
    addTraffic(at, mesh, ranks);
    for (Operation *op : at.steps)
      if (auto copy = dyn_cast<exec::CopyOp>(op))
        for (rt::RankReport *rank : ranks)
          addTransfer(copy, *rank);
  }
  return report;
}

} // namespace shoal::codegen
