// The compiler's promise of a step: bytes held and sent by every rank, from the program's types and
// the formulas of shoal-rt/traffic.h.
#include "shoal/Codegen/Emit.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"

using namespace mlir;

namespace shoal::codegen {

static uint64_t bytesOf(Value buffer) {
  return cast<exec::BufferType>(buffer.getType()).getElementBytes();
}
static uint64_t elementsOf(Value buffer) {
  return cast<exec::BufferType>(buffer.getType()).getNumElements();
}

/// What the rank at a mesh position sends in one row.
static void addTraffic(exec::RowOpInterface row, dist::MeshAttr mesh, int64_t position,
                       rt::RankReport &rank) {
  rt::Opcode opcode = row.getOpcode();
  if (!rt::isCommunication(opcode))
    return;
  std::string kind = rt::collectiveKind(opcode);
  SmallVector<exec::Message> messages;
  row.getMessages(mesh, messages);
  auto isSent = [&](const exec::Message &message) {
    return message.isSend && message.peers[position] >= 0;
  };
  auto endsOf = [&](const exec::Message &message) {
    return message.peers[position] == position ? 1 : 2;
  };
  dist::AxesAttr axes = row.getGroup();
  if (!axes) {
    uint64_t count = 0, bytes = 0;
    for (const exec::Message &message : llvm::make_filter_range(messages, isSent)) {
      ++count;
      bytes += rt::sentBytes(opcode, endsOf(message), 0, 0, elementsOf(message.buffer),
                             bytesOf(message.buffer));
    }
    if (count)
      rank.addCollective(kind, {}, count, bytes);
    return;
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
  rank.addCollective(
      kind, dist::getAxisNames(axes), 1,
      rt::sentBytes(opcode, ranks, along, row.getRootPosition().value_or(0), elements, bytes));
}

/// What a copy moves from one memory to the other.
static void addTransfer(exec::CopyOp copy, rt::RankReport &rank) {
  exec::Memory to = exec::getMemory(copy.getOutput());
  if (to != exec::getMemory(copy.getInput()))
    rank.addTransfer(exec::stringifyMemory(to).str(), copy.getOutput().getType().getNumBytes());
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
  exec::BytesAttr bytes = program.getBytes();
  for (int64_t position = 0; position < positions; ++position) {
    int64_t device =
        mesh && !mesh.getDeviceIds().empty() ? mesh.getDeviceIds()[position] : position;
    rt::RankReport &rank = report.ranks[device];
    rank.rank = device;
    if (mesh)
      for (auto [axis, coordinate] : llvm::zip_equal(mesh.getAxes(), mesh.getCoordinates(position)))
        rank.addCoordinate(axis.getName().str(), axis.getSize(), coordinate);
    rank.bytes = {uint64_t(bytes.getParams()),    uint64_t(bytes.getGrads()),
                  uint64_t(bytes.getOptimizer()), uint64_t(bytes.getActivations()),
                  uint64_t(bytes.getWorkspace()), uint64_t(program.getArena()),
                  uint64_t(program.getHost())};
    for (auto row : program.getBody().getOps<exec::RowOpInterface>()) {
      if (!exec::runsAt(row, position))
        continue;
      addTraffic(row, mesh, position, rank);
      if (auto copy = dyn_cast<exec::CopyOp>(*row))
        addTransfer(copy, rank);
    }
  }
  return report;
}

} // namespace shoal::codegen
