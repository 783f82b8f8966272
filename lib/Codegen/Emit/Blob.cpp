// exec.program to the constant table that the runtime executes.
#include "shoal/Codegen/Emit.h"

#include "Rows.h"
#include "shoal-rt/blob_builder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::codegen {

namespace {

rt::Mode modeOf(exec::Mode mode) {
  switch (mode) {
  case exec::Mode::train:
    return rt::Mode::Train;
  case exec::Mode::infer:
    return rt::Mode::Infer;
  case exec::Mode::eval:
    return rt::Mode::Eval;
  }
  llvm_unreachable("every mode is listed");
}

class Emitter {
public:
  explicit Emitter(exec::ProgramOp program)
      : program(program), blob(program.getSymName().str(), modeOf(program.getMode())) {}

  Program run();

private:
  void addMesh();
  void addArgument(exec::ArgOp op);
  void addRow(Operation &op);
  uint32_t addResult(exec::ProbeOp op);
  uint32_t viewOf(Value buffer);
  uint32_t groupOf(dist::AxesAttr axes);
  std::vector<rt::BlobBuilder::DimSpec> dimsOf(exec::BufferType local, std::optional<Type> global,
                                               std::optional<dist::ShardingAttr> sharding);
  uint32_t eventOf(Value token) { return events.try_emplace(token, events.size()).first->second; }
  rt::BlobBuilder::PeerSpec peerOf(bool isSend, Value buffer, Attribute positions);

  exec::ProgramOp program;
  rt::BlobBuilder blob;
  dist::MeshAttr mesh;
  llvm::StringMap<uint32_t> axes, kernels;
  DenseMap<Value, uint32_t> views, events;
};

} // namespace

void Emitter::addMesh() {
  dist::MeshOp op = dist::lookupMesh(program);
  if (!op)
    return;
  mesh = op.getMesh();
  for (dist::MeshAxisAttr axis : mesh.getAxes())
    axes[axis.getName().getValue()] = blob.addAxis(axis.getName().str(), axis.getSize());
  if (!mesh.getDeviceIds().empty())
    blob.setDeviceIds({mesh.getDeviceIds().begin(), mesh.getDeviceIds().end()});
}

uint32_t Emitter::groupOf(dist::AxesAttr attr) {
  std::vector<uint32_t> indices;
  for (StringAttr axis : attr.getAxes())
    indices.push_back(axes.lookup(axis));
  return blob.addGroup(indices);
}

/// What the bytes of an exec.arg or exec.buffer are counted as.
static rt::StorageClass classOf(Operation *storage) {
  static constexpr rt::StorageClass classes[] = {
      rt::StorageClass::Param, rt::StorageClass::Optimizer,  rt::StorageClass::Input,
      rt::StorageClass::Grad,  rt::StorageClass::Activation, rt::StorageClass::Workspace};
  if (auto argument = dyn_cast<exec::ArgOp>(storage))
    return classes[unsigned(argument.getStorageClass())];
  return classes[unsigned(cast<exec::BufferOp>(storage).getStorage())];
}

uint32_t Emitter::viewOf(Value buffer) {
  if (auto at = views.find(buffer); at != views.end())
    return at->second;
  auto type = cast<exec::BufferType>(buffer.getType());
  exec::ByteRange range = exec::getByteRange(buffer);
  Value whole = range.storage->getResult(0);
  uint32_t storage = buffer == whole ? rt::kNone : viewOf(whole);
  uint32_t view = blob.addView(range.begin, type.getNumElements(), dtypeOf(type.getElementType()),
                               classOf(range.storage), storage);
  views[buffer] = view;
  return view;
}

std::vector<rt::BlobBuilder::DimSpec> Emitter::dimsOf(exec::BufferType local,
                                                      std::optional<Type> global,
                                                      std::optional<dist::ShardingAttr> sharding) {
  std::vector<rt::BlobBuilder::DimSpec> dims;
  for (auto [i, size] : llvm::enumerate(local.getShape())) {
    rt::BlobBuilder::DimSpec dim;
    dim.global = global ? cast<RankedTensorType>(*global).getDimSize(i) : size;
    if (sharding)
      for (StringAttr axis : sharding->getDimAxes(i))
        dim.axes.push_back(axes.lookup(axis));
    dims.push_back(dim);
  }
  return dims;
}

void Emitter::addArgument(exec::ArgOp op) {
  static constexpr rt::ArgKind kinds[] = {rt::ArgKind::Input, rt::ArgKind::Param,
                                          rt::ArgKind::State, rt::ArgKind::Step,
                                          rt::ArgKind::ValidRows, rt::ArgKind::Buffer};
  static constexpr rt::InitKind inits[] = {rt::InitKind::None,    rt::InitKind::Constant,
                                           rt::InitKind::Uniform, rt::InitKind::Normal,
                                           rt::InitKind::KaimingUniform,
                                           rt::InitKind::XavierUniform};
  rt::BlobBuilder::ArgSpec spec;
  spec.name = op.getName().str();
  spec.kind = kinds[unsigned(op.getKind())];
  spec.view = viewOf(op.getResult());
  spec.dims = dimsOf(op.getResult().getType(), op.getGlobal(), op.getSharding());
  spec.batchDim = int64_t(op.getBatchDim());
  spec.init = inits[unsigned(op.getInit())];
  spec.a = op.getA().convertToDouble();
  spec.b = op.getB().convertToDouble();
  blob.addArg(spec);
}

uint32_t Emitter::addResult(exec::ProbeOp op) {
  static constexpr rt::ResultKind kinds[] = {rt::ResultKind::Loss, rt::ResultKind::Metric,
                                             rt::ResultKind::Output, rt::ResultKind::Grad};
  rt::BlobBuilder::ResultSpec spec;
  spec.name = op.getResultName().str();
  spec.kind = kinds[unsigned(op.getKind())];
  spec.view = viewOf(op.getInput());
  spec.dims = dimsOf(op.getInput().getType(), op.getGlobal(), op.getSharding());
  spec.batchDim = int64_t(op.getBatchDim());
  return blob.addResult(spec);
}

rt::BlobBuilder::PeerSpec Emitter::peerOf(bool isSend, Value buffer, Attribute positions) {
  rt::BlobBuilder::PeerSpec peer;
  peer.isSend = isSend;
  peer.view = viewOf(buffer);
  for (int64_t position : cast<DenseI64ArrayAttr>(positions).asArrayRef())
    peer.positions.push_back(position < 0 ? rt::kNone : uint32_t(position));
  return peer;
}

void Emitter::addRow(Operation &op) {
  rt::BlobBuilder::InstrSpec spec;
  spec.op = opcodeOf(&op);
  if (auto wait = dyn_cast<exec::WaitOp>(op)) {
    spec.stream = wait.getStream();
    spec.params = {eventOf(wait.getToken())};
    blob.addInstr(spec);
    return;
  }
  auto row = cast<exec::RowOpInterface>(op);
  spec.stream = row.getStreamIndex();
  if (Value token = row.getSignal())
    spec.event = eventOf(token);
  if (auto name = op.getAttrOfType<StringAttr>("name"))
    spec.name = name.str();
  if (auto reason = op.getAttrOfType<StringAttr>("reason"))
    spec.reason = reason.str();
  if (op.hasAttr(exec::ExecDialect::kAtAttr))
    for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
      spec.onlyAt.push_back(exec::runsAt(&op, position));
  auto use = [&](ValueRange buffers) {
    for (Value buffer : buffers)
      spec.operands.push_back(viewOf(buffer));
  };

  if (auto attr = op.getAttrOfType<dist::AxesAttr>("axes"))
    spec.a = groupOf(attr);
  if (auto kind = op.getAttrOfType<dist::ReduceKindAttrEnumAttr>("kind"))
    spec.b = uint32_t(kind.getValue());
  if (auto root = op.getAttrOfType<IntegerAttr>("root"))
    spec.params = {root.getInt()};

  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](exec::LaunchOp launch) {
        spec.a = kernels.lookup(launch.getKernel());
        spec.name = launch.getKernel().str();
        use(launch.getOperands());
      })
      .Case([&](exec::GemmOp gemm) {
        use(gemm.getOperands());
        auto strides = gemm.getStrides().value_or(ArrayRef<int64_t>());
        auto stride = [&](unsigned i) { return strides.empty() ? int64_t(0) : strides[i]; };
        spec.params.assign(rt::kGemmNumParams, 0);
        spec.params[rt::kGemmM] = gemm.getM();
        spec.params[rt::kGemmN] = gemm.getN();
        spec.params[rt::kGemmK] = gemm.getK();
        spec.params[rt::kGemmBatch] = gemm.getBatch();
        spec.params[rt::kGemmTransA] = gemm.getTransposeA();
        spec.params[rt::kGemmTransB] = gemm.getTransposeB();
        spec.params[rt::kGemmLdA] = gemm.getLda();
        spec.params[rt::kGemmLdB] = gemm.getLdb();
        spec.params[rt::kGemmLdC] = gemm.getLdc();
        spec.params[rt::kGemmStrideA] = stride(0);
        spec.params[rt::kGemmStrideB] = stride(1);
        spec.params[rt::kGemmStrideC] = stride(2);
        spec.params[rt::kGemmAccumulate] = gemm.getAccumulate();
        spec.params[rt::kGemmDTypeIn] =
            int64_t(dtypeOf(gemm.getA().getType().getElementType()));
        spec.params[rt::kGemmDTypeOut] =
            int64_t(dtypeOf(gemm.getC().getType().getElementType()));
      })
      .Case([&](exec::AxisIndexOp index) {
        use(index.getOutput());
        spec.params = {int64_t(index.getScale())};
      })
      .Case([&](exec::PermuteOp permute) {
        use(permute.getOperands());
        for (bool sends : {true, false})
          spec.peers.push_back({sends, viewOf(sends ? permute.getInput() : permute.getOutput()),
                                permutePeers(permute, mesh, sends)});
      })
      .Case([&](exec::PointToPointOp messages) {
        spec.a = rt::kNone;
        for (auto [buffer, peers] : llvm::zip_equal(messages.getSends(), messages.getTargets()))
          spec.peers.push_back(peerOf(true, buffer, peers));
        for (auto [buffer, peers] : llvm::zip_equal(messages.getRecvs(), messages.getSources()))
          spec.peers.push_back(peerOf(false, buffer, peers));
      })
      .Case([&](exec::ProbeOp probe) {
        spec.a = addResult(probe);
        spec.name = probe.getResultName().str();
      })
      .Default([&](Operation *other) { use(other->getOperands()); });
  blob.addInstr(spec);
}

Program Emitter::run() {
  Program result;
  for (func::FuncOp kernel : exec::getKernels(program->getParentOfType<ModuleOp>())) {
    kernels[kernel.getSymName()] = result.kernels.size();
    result.kernels.push_back(kernel.getSymName().str());
  }
  addMesh();
  for (Operation &op : program.getBody().front()) {
    if (auto argument = dyn_cast<exec::ArgOp>(op))
      addArgument(argument);
    else if (isa<exec::WaitOp, exec::RowOpInterface>(op))
      addRow(op);
  }
  rt::Header &header = blob.header();
  header.arenaBytes = program.getArena();
  header.batchRows = program.getRows();
  header.numKernels = result.kernels.size();
  result.blob = blob.finish();
  return result;
}

FailureOr<Program> emitProgram(ModuleOp module) {
  FailureOr<Programs> programs = findPrograms(module);
  if (failed(programs))
    return failure();
  Program result = Emitter(programs->step).run();
  if (programs->evaluation) // numbers the same kernels
    result.evaluation = Emitter(programs->evaluation).run().blob;
  return result;
}

} // namespace shoal::codegen
