// The compiler's promise of a step: bytes held and sent by every rank, from the program's types and
// the formulas of shoal-rt/traffic.h.
#include "shoal/Codegen/Emit.h"

#include "Rows.h"
#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"

using namespace mlir;

namespace shoal::codegen {

static std::vector<std::string> namesOf(dist::AxesAttr axes) {
  std::vector<std::string> names;
  for (StringAttr axis : axes.getAxes())
    names.push_back(axis.str());
  return names;
}

static uint64_t bytesOf(Value buffer) {
  return cast<exec::BufferType>(buffer.getType()).getElementBytes();
}
static uint64_t elementsOf(Value buffer) {
  return cast<exec::BufferType>(buffer.getType()).getNumElements();
}

/// What the rank at a mesh position sends in one row.
static void addTraffic(Operation &op, dist::MeshAttr mesh, int64_t position, rt::RankReport &rank) {
  rt::Opcode opcode = opcodeOf(&op);
  if (!rt::isCommunication(opcode))
    return;
  std::string kind = rt::collectiveKind(opcode);
  if (auto messages = dyn_cast<exec::PointToPointOp>(op)) {
    uint64_t count = 0, bytes = 0;
    for (auto [buffer, peers] : llvm::zip_equal(messages.getSends(), messages.getTargets())) {
      int64_t peer = cast<DenseI64ArrayAttr>(peers)[position];
      if (peer < 0)
        continue;
      ++count;
      bytes += rt::sentBytes(opcode, peer == position ? 1 : 2, 0, 0, elementsOf(buffer),
                             bytesOf(buffer));
    }
    if (count)
      rank.addCollective(kind, {}, count, bytes);
    return;
  }
  auto axes = op.getAttrOfType<dist::AxesAttr>("axes");
  uint64_t ranks = mesh.getSize(axes.getAxes());
  uint64_t along = mesh.getIndexAlong(position, axes.getAxes());
  auto rootAttr = op.getAttrOfType<IntegerAttr>("root");
  uint64_t root = rootAttr ? rootAttr.getInt() : 0, elements = 0, bytes = 1;
  if (op.getNumOperands() == 2) {
    elements = std::max(elementsOf(op.getOperand(0)), elementsOf(op.getOperand(1)));
    bytes = bytesOf(op.getOperand(0));
  }
  if (auto permute = dyn_cast<exec::PermuteOp>(op)) {
    uint32_t peer = permutePeers(permute, mesh, /*sends=*/true)[position];
    ranks = peer == rt::kNone || peer == position ? 1 : 2;
  }
  rank.addCollective(kind, namesOf(axes), 1,
                     rt::sentBytes(opcode, ranks, along, root, elements, bytes));
}

FailureOr<std::string> emitReport(ModuleOp module) {
  FailureOr<Programs> found = findPrograms(module);
  if (failed(found))
    return failure();
  exec::ProgramOp program = found->step;
  rt::Report report;
  report.program = program.getSymName().str();
  dist::MeshOp meshOp = dist::lookupMesh(program);
  dist::MeshAttr mesh = meshOp ? meshOp.getMesh() : dist::MeshAttr();
  int64_t positions = mesh ? mesh.getNumDevices() : 1;
  if (mesh)
    for (dist::MeshAxisAttr axis : mesh.getAxes())
      report.axes.push_back({axis.getName().str(), uint64_t(axis.getSize())});
  report.ranks.resize(positions);
  exec::BytesAttr bytes = program.getBytes();
  for (int64_t position = 0; position < positions; ++position) {
    int64_t device =
        mesh && !mesh.getDeviceIds().empty() ? mesh.getDeviceIds()[position] : position;
    rt::RankReport &rank = report.ranks[device];
    rank.rank = device;
    if (mesh)
      for (auto [axis, coordinate] : llvm::zip_equal(mesh.getAxes(), mesh.getCoordinates(position)))
        rank.coords.push_back({axis.getName().str(), uint64_t(coordinate)});
    rank.bytes = {uint64_t(bytes.getParams()),    uint64_t(bytes.getGrads()),
                  uint64_t(bytes.getOptimizer()), uint64_t(bytes.getActivations()),
                  uint64_t(bytes.getWorkspace()), uint64_t(program.getArena())};
    for (Operation &op : program.getBody().front())
      if (isa<exec::RowOpInterface>(op) && exec::runsAt(&op, position))
        addTraffic(op, mesh, position, rank);
  }
  return rt::toText(report);
}

} // namespace shoal::codegen
