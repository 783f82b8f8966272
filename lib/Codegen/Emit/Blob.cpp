// exec.program to the constant table that the runtime executes.
#include "shoal/Codegen/Emit.h"

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal-rt/arena_limit.h"
#include "shoal-rt/blob_builder.h"

using namespace mlir;

namespace shoal::codegen {

namespace {

// The table's enums are those of the IR, value for value, so that a cast makes one of the other.
template <auto ir, auto table> constexpr bool same = uint32_t(ir) == uint32_t(table);
static_assert(exec::getMaxEnumValForMode() == 2 && same<exec::Mode::train, rt::Mode::Train> &&
              same<exec::Mode::infer, rt::Mode::Infer> && same<exec::Mode::eval, rt::Mode::Eval>);
static_assert(exec::getMaxEnumValForStorageClass() == 5 &&
              same<exec::StorageClass::param, rt::StorageClass::Param> &&
              same<exec::StorageClass::optimizer, rt::StorageClass::Optimizer> &&
              same<exec::StorageClass::input, rt::StorageClass::Input> &&
              same<exec::StorageClass::grad, rt::StorageClass::Grad> &&
              same<exec::StorageClass::activation, rt::StorageClass::Activation> &&
              same<exec::StorageClass::workspace, rt::StorageClass::Workspace>);
static_assert(exec::getMaxEnumValForArgKind() == 6 && same<exec::ArgKind::input, rt::ArgKind::Input> &&
              same<exec::ArgKind::param, rt::ArgKind::Param> && same<exec::ArgKind::state, rt::ArgKind::State> &&
              same<exec::ArgKind::step, rt::ArgKind::Step> &&
              same<exec::ArgKind::valid_rows, rt::ArgKind::ValidRows> &&
              same<exec::ArgKind::buffer, rt::ArgKind::Buffer> && same<exec::ArgKind::seed, rt::ArgKind::Seed>);
static_assert(exec::getMaxEnumValForInit() == 5 && same<exec::Init::none, rt::InitKind::None> &&
              same<exec::Init::constant, rt::InitKind::Constant> &&
              same<exec::Init::uniform, rt::InitKind::Uniform> && same<exec::Init::normal, rt::InitKind::Normal> &&
              same<exec::Init::kaiming_uniform, rt::InitKind::KaimingUniform> &&
              same<exec::Init::xavier_uniform, rt::InitKind::XavierUniform>);
static_assert(dist::getMaxEnumValForReduceKindAttrEnum() == 2 &&
              same<dist::ReduceKindAttrEnum::sum, rt::Reduction::Sum> &&
              same<dist::ReduceKindAttrEnum::max, rt::Reduction::Max> &&
              same<dist::ReduceKindAttrEnum::min, rt::Reduction::Min>);
static_assert(exec::getMaxEnumValForResultKind() == 3 && same<exec::ResultKind::loss, rt::ResultKind::Loss> &&
              same<exec::ResultKind::metric, rt::ResultKind::Metric> &&
              same<exec::ResultKind::output, rt::ResultKind::Output> &&
              same<exec::ResultKind::grad, rt::ResultKind::Grad>);

class Emitter {
public:
  Emitter(exec::ProgramOp program, StringRef plan, StringRef stages = {})
      : program(program), blob(program.getSymName().str(), rt::Mode(program.getMode()), plan.str(), stages.str()) {}

  Program run();

private:
  void addMesh();
  void addArgument(exec::ArgOp op);
  void findFileShapes();
  std::vector<int64_t> fileShapeOf(StringRef param, ArrayRef<int64_t> shape);
  std::vector<rt::BlobBuilder::MemberSpec> membersOf(std::optional<dist::BucketAttr> bucket);
  void addWait(exec::WaitOp op);
  void addRow(exec::RowOpInterface row);
  uint32_t addResult(exec::ProbeOp op);
  uint32_t viewOf(Value buffer);
  uint32_t groupOf(dist::AxesAttr axes);
  std::vector<rt::BlobBuilder::DimSpec> dimsOf(ArrayRef<int64_t> local, std::optional<Type> global,
                                               std::optional<dist::ShardingAttr> sharding);
  rt::Positions positionsOf(Operation *op);
  uint32_t eventOf(Value token) { return events.try_emplace(token, events.size()).first->second; }

  exec::ProgramOp program;
  rt::BlobBuilder blob;
  dist::MeshAttr mesh;
  llvm::StringMap<uint32_t> axes, kernels;
  DenseMap<Value, uint32_t> views, events;
  DenseMap<Attribute, rt::Positions> positions; // of exec.at
  llvm::StringMap<std::vector<int64_t>> fileShapes; // of parameters that have one; their state and gradients have it, too
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

rt::Positions Emitter::positionsOf(Operation *op) {
  Attribute at = op->getAttr(exec::ExecDialect::kAtAttr);
  if (!at)
    return rt::kNone;
  auto [known, isNew] = positions.try_emplace(at, rt::kNone);
  if (isNew) {
    std::vector<uint32_t> members(mesh.getNumDevices());
    for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
      members[position] = exec::runsAt(op, position);
    known->second = blob.addPositions(members);
  }
  return known->second;
}

/// What the bytes of an exec.arg or exec.buffer are counted as.
static rt::StorageClass storageClassOf(Operation *storage) {
  auto argument = dyn_cast<exec::ArgOp>(storage);
  return rt::StorageClass(argument ? argument.getStorageClass() : cast<exec::BufferOp>(storage).getStorage());
}

uint32_t Emitter::viewOf(Value buffer) {
  if (auto at = views.find(buffer); at != views.end())
    return at->second;
  auto type = cast<exec::BufferType>(buffer.getType());
  exec::ByteRange range = exec::getByteRange(buffer);
  Value whole = range.storage->getResult(0);
  uint32_t storage = buffer == whole ? rt::kNone : viewOf(whole);
  uint32_t view = blob.addView(range.begin, type.getNumElements(), exec::getDType(type.getElementType()),
                               storageClassOf(range.storage), storage);
  views[buffer] = view;
  return view;
}

std::vector<rt::BlobBuilder::DimSpec> Emitter::dimsOf(ArrayRef<int64_t> local, std::optional<Type> global,
                                                      std::optional<dist::ShardingAttr> sharding) {
  std::vector<rt::BlobBuilder::DimSpec> dims;
  for (auto [i, size] : llvm::enumerate(local)) {
    rt::BlobBuilder::DimSpec dim;
    dim.global = global ? cast<RankedTensorType>(*global).getDimSize(i) : size;
    if (sharding)
      for (StringAttr axis : sharding->getDimAxes(i))
        dim.axes.push_back(axes.lookup(axis));
    dims.push_back(dim);
  }
  return dims;
}

void Emitter::findFileShapes() {
  for (auto op : program.getBody().getOps<exec::ArgOp>()) {
    if (op.getKind() == exec::ArgKind::param && op.getFile())
      fileShapes[op.getName()] = op.getFile()->vec();
    if (std::optional<dist::BucketAttr> bucket = op.getBucket())
      for (dist::MemberAttr member : bucket->getMembers())
        if (auto param = dyn_cast<nn::ParamAttr>(member.getRole()); param && param.getFile())
          fileShapes[param.getName()] = param.getFile().asArrayRef().vec();
  }
}

/// Of what is kept as a parameter is; none where that has no shape of its own in files, or is of another size.
std::vector<int64_t> Emitter::fileShapeOf(StringRef param, ArrayRef<int64_t> shape) {
  std::vector<int64_t> file = fileShapes.lookup(param);
  return ShapedType::getNumElements(file) == ShapedType::getNumElements(shape) ? file : std::vector<int64_t>();
}

std::vector<rt::BlobBuilder::MemberSpec> Emitter::membersOf(std::optional<dist::BucketAttr> bucket) {
  std::vector<rt::BlobBuilder::MemberSpec> specs;
  for (dist::MemberAttr member : bucket ? bucket->getMembers() : ArrayRef<dist::MemberAttr>()) {
    dist::GlobalAttr global = member.getGlobal();
    rt::BlobBuilder::MemberSpec spec;
    spec.name = member.getName().str();
    spec.range = {uint64_t(member.getBegin()), uint64_t(member.getEnd())};
    spec.dims = dimsOf(member.getType().getShape(), member.getWholeType(),
                       global ? std::optional(global.getSharding()) : std::nullopt);
    if (std::optional<nn::InitialValue> initial = nn::getInitialValue(member.getRole())) {
      spec.init = rt::InitKind(exec::initOf(initial));
      spec.a = initial->a;
      spec.b = initial->b;
    }
    auto state = dyn_cast<nn::StateAttr>(member.getRole());
    spec.of = state ? state.getOf().str() : "";
    spec.file = fileShapeOf(state ? state.getOf() : member.getName(), member.getWholeType().getShape());
    specs.push_back(std::move(spec));
  }
  return specs;
}

void Emitter::addArgument(exec::ArgOp op) {
  rt::BlobBuilder::ArgSpec spec;
  spec.name = op.getName().str();
  spec.of = op.getOf().value_or("").str();
  spec.kind = rt::ArgKind(op.getKind());
  spec.view = viewOf(op.getResult());
  spec.dims = dimsOf(op.getResult().getType().getShape(), op.getGlobal(), op.getSharding());
  spec.batchDim = int64_t(op.getBatchDim());
  spec.init = rt::InitKind(op.getInit());
  spec.a = op.getA().convertToDouble();
  spec.b = op.getB().convertToDouble();
  if (std::optional<ArrayRef<int64_t>> file = op.getFile())
    spec.file.assign(file->begin(), file->end());
  spec.indices = op.getIndices().value_or(0);
  spec.ignored = op.getIgnored() ? int64_t(*op.getIgnored()) : 0;
  spec.members = membersOf(op.getBucket());
  spec.isMaster = op.getMaster();
  spec.heldAt = positionsOf(op);
  blob.addArg(spec);
}

uint32_t Emitter::addResult(exec::ProbeOp op) {
  rt::BlobBuilder::ResultSpec spec;
  spec.name = op.getResultName().str();
  spec.kind = rt::ResultKind(op.getKind());
  spec.view = viewOf(op.getInput());
  spec.dims = dimsOf(op.getInput().getType().getShape(), op.getGlobal(), op.getSharding());
  spec.batchDim = int64_t(op.getBatchDim());
  spec.members = membersOf(op.getBucket());
  if (op.getKind() == exec::ResultKind::grad && spec.members.empty())
    spec.file = fileShapeOf(op.getResultName(), op.getGlobal() ? cast<RankedTensorType>(*op.getGlobal()).getShape()
                                                               : op.getInput().getType().getShape());
  return blob.addResult(spec);
}

void Emitter::addWait(exec::WaitOp op) {
  rt::BlobBuilder::InstrSpec spec;
  spec.op = rt::Opcode::Wait;
  spec.stream = op.getStream();
  spec.params = {eventOf(op.getToken())};
  spec.onlyAt = positionsOf(op);
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
  if (auto scope = row->getAttrOfType<StringAttr>(exec::ExecDialect::kScopeAttr))
    spec.scope = scope.str();
  spec.onlyAt = positionsOf(row);
  SmallVector<int64_t> params;
  row.getParams(params);
  spec.params.assign(params.begin(), params.end());
  if (std::optional<dist::ReduceKindAttrEnum> kind = row.getReduction())
    spec.b = uint32_t(rt::Reduction(*kind));
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
  findFileShapes();
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

LogicalResult checkOneMemory(ModuleOp module) {
  for (auto program : module.getOps<exec::ProgramOp>())
    for (Operation &op : program.getBody().front()) {
      if (!isa<exec::ArgOp, exec::BufferOp>(op) || exec::getMemory(op.getResult(0)) == exec::Memory::device)
        continue;
      auto argument = dyn_cast<exec::ArgOp>(op);
      return emitError(op.getLoc()) << (argument ? "\"" + argument.getName().str() + "\"" : "a buffer")
                                    << " lies in the memory of a device's host (dist.memory), which on --target cpu is "
                                    << "the device's own; leave dist.memory out";
    }
  return success();
}

FailureOr<Program> emitProgram(ModuleOp module, StringRef plan, StringRef stages) {
  FailureOr<exec::Programs> programs = exec::findPrograms(module);
  if (failed(programs) || failed(checkOneMemory(module)))
    return failure();
  for (exec::ProgramOp program : module.getOps<exec::ProgramOp>())
    if (uint64_t(program.getArena()) > rt::kMaxArenaBytes)
      return program.emitOpError() << "arena must be at most " << rt::kMaxArenaBytes
                                   << " bytes, which is what the runtime takes, got: " << program.getArena();
  Program result = Emitter(programs->step, plan, stages).run();
  if (programs->evaluation) // numbers the same kernels
    result.evaluation = Emitter(programs->evaluation, plan).run().blob;
  return result;
}

} // namespace shoal::codegen
