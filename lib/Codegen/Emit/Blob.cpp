// exec.program to the constant table that the runtime executes.
#include "shoal/Codegen/Emit.h"

#include "Rows.h"
#include "shoal-rt/blob_builder.h"

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
  void addWait(exec::WaitOp op);
  void addRow(exec::RowOpInterface row);
  uint32_t addResult(exec::ProbeOp op);
  uint32_t viewOf(Value buffer);
  uint32_t groupOf(dist::AxesAttr axes);
  std::vector<rt::BlobBuilder::DimSpec> dimsOf(exec::BufferType local, std::optional<Type> global,
                                               std::optional<dist::ShardingAttr> sharding);
  uint32_t eventOf(Value token) { return events.try_emplace(token, events.size()).first->second; }

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
  uint32_t view = blob.addView(range.begin, type.getNumElements(), exec::getDType(type.getElementType()),
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

void Emitter::addWait(exec::WaitOp op) {
  rt::BlobBuilder::InstrSpec spec;
  spec.op = rt::Opcode::Wait;
  spec.stream = op.getStream();
  spec.params = {eventOf(op.getToken())};
  blob.addInstr(spec);
}

void Emitter::addRow(exec::RowOpInterface row) {
  rt::BlobBuilder::InstrSpec spec;
  spec.op = row.getOpcode();
  spec.stream = row.getStreamIndex();
  if (Value token = row.getSignal())
    spec.event = eventOf(token);
  if (auto name = row->getAttrOfType<StringAttr>("name"))
    spec.name = name.str();
  if (auto reason = row->getAttrOfType<StringAttr>("reason"))
    spec.reason = reason.str();
  if (row->hasAttr(exec::ExecDialect::kAtAttr))
    for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
      spec.onlyAt.push_back(exec::runsAt(row, position));
  SmallVector<int64_t> params;
  row.getParams(params);
  spec.params.assign(params.begin(), params.end());
  if (std::optional<dist::ReduceKindAttrEnum> kind = row.getReduction())
    spec.b = uint32_t(*kind);
  SmallVector<exec::Message> messages;
  row.getMessages(mesh, messages);
  for (const exec::Message &message : messages) {
    auto &peer = spec.peers.emplace_back();
    peer.isSend = message.isSend;
    peer.view = viewOf(message.buffer);
    for (int64_t position : message.peers)
      peer.positions.push_back(position < 0 ? rt::kNone : uint32_t(position));
  }
  // Messages between any two positions have no buffers but theirs.
  bool isGroupless = row.getMeeting() == exec::Meeting::Pairs && !row.getGroup();
  if (!isGroupless && spec.op != rt::Opcode::Probe)
    for (Value buffer : row->getOperands())
      spec.operands.push_back(viewOf(buffer));

  // What the row names besides: a group, a kernel, a function, a result.
  if (dist::AxesAttr group = row.getGroup())
    spec.a = groupOf(group);
  else if (isGroupless)
    spec.a = rt::kNone;
  if (auto launch = dyn_cast<exec::LaunchOp>(*row)) {
    spec.a = kernels.lookup(launch.getKernel());
    spec.name = launch.getKernel().str();
  } else if (auto call = dyn_cast<exec::LibraryRowOpInterface>(*row)) {
    spec.a = uint32_t(call.getFunction());
  } else if (auto probe = dyn_cast<exec::ProbeOp>(*row)) {
    spec.a = addResult(probe);
    spec.name = probe.getResultName().str();
  }
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
    else if (auto wait = dyn_cast<exec::WaitOp>(op))
      addWait(wait);
    else if (auto row = dyn_cast<exec::RowOpInterface>(op))
      addRow(row);
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
