// Names of the exec dialect to numbers of the runtime.
#include "Rows.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::codegen {

FailureOr<Programs> findPrograms(ModuleOp module) {
  auto programs = llvm::to_vector(module.getOps<exec::ProgramOp>());
  if (programs.size() == 1)
    return Programs{programs.front(), {}};
  if (programs.size() == 2) {
    if (programs[0].getMode() == exec::Mode::eval)
      std::swap(programs[0], programs[1]);
    if (programs[0].getMode() == exec::Mode::train && programs[1].getMode() == exec::Mode::eval)
      return Programs{programs[0], programs[1]};
  }
  return module.emitError() << "expected one exec.program, or one of training and one of evaluation, got: "
                            << programs.size();
}

rt::Opcode opcodeOf(Operation *row) {
  using rt::Opcode;
  return llvm::TypeSwitch<Operation *, Opcode>(row)
      .Case([](exec::LaunchOp) { return Opcode::Launch; })
      .Case([](exec::GemmOp) { return Opcode::Gemm; })
      .Case([](exec::CopyOp) { return Opcode::Copy; })
      .Case([](exec::AxisIndexOp) { return Opcode::AxisIndex; })
      .Case([](exec::AllReduceOp) { return Opcode::AllReduce; })
      .Case([](exec::AllGatherOp) { return Opcode::AllGather; })
      .Case([](exec::ReduceScatterOp) { return Opcode::ReduceScatter; })
      .Case([](exec::AllToAllOp) { return Opcode::AllToAll; })
      .Case([](exec::BroadcastOp) { return Opcode::Broadcast; })
      .Case([](exec::ScatterOp) { return Opcode::Scatter; })
      .Case([](exec::GatherOp) { return Opcode::Gather; })
      .Case([](exec::PermuteOp) { return Opcode::Permute; })
      .Case([](exec::PointToPointOp) { return Opcode::PointToPoint; })
      .Case([](exec::BarrierOp) { return Opcode::Barrier; })
      .Case([](exec::WaitOp) { return Opcode::Wait; })
      .Case([](exec::ProbeOp) { return Opcode::Probe; });
}

rt::DType dtypeOf(Type elementType) {
  if (elementType.isF32())
    return rt::DType::F32;
  if (elementType.isF64())
    return rt::DType::F64;
  if (elementType.isBF16())
    return rt::DType::BF16;
  if (elementType.isInteger(32))
    return rt::DType::I32;
  if (elementType.isInteger(64))
    return rt::DType::I64;
  if (elementType.isInteger(1))
    return rt::DType::I1;
  llvm_unreachable("the verifier of exec buffers admits no other element type");
}

std::vector<uint32_t> permutePeers(exec::PermuteOp op, dist::MeshAttr mesh, bool sends) {
  ArrayRef<StringAttr> axes = op.getAxes().getAxes();
  std::vector<uint32_t> peers(mesh.getNumDevices(), rt::kNone);
  // Positions of one group differ only along the axes; find the peer among them.
  for (int64_t position = 0; position < mesh.getNumDevices(); ++position) {
    int64_t along = mesh.getIndexAlong(position, axes);
    for (auto [source, target] : llvm::zip_equal(op.getSources(), op.getTargets())) {
      if (along != (sends ? source : target))
        continue;
      peers[position] = mesh.getPositionAlong(position, axes, sends ? target : source);
    }
  }
  return peers;
}

} // namespace shoal::codegen
