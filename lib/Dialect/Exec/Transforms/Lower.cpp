// The outlined step function becomes a rank program: storage is decided (Placement), rows are built
// (RowBuilder), then streams are made to wait for each other (InsertWaits) and buffers get offsets
// (AssignOffsets).
#include "DefinedPositions.h"
#include "Layout.h"
#include "RowBuilder.h"

#include "shoal/Dialect/Exec/IR/PositionClasses.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Support/Elements.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_LOWERPASS
#include "shoal/passes/ShoalExec.h.inc"

namespace {

/// What an argument or result is a piece of: its global type and sharding, both absent when every
/// rank has all of it.
struct Logical {
  TypeAttr type;
  dist::ShardingAttr sharding;
};

class Lowering {
public:
  Lowering(ModuleOp module, func::FuncOp step, bool overlap)
      : module(module), step(step), symbols(module), arguments(step), updated(nn::updatedArguments(step)),
        placement(step, symbols), commStream(overlap ? 1 : 0) {}

  LogicalResult run();

private:
  LogicalResult checkRoles();
  LogicalResult findBatch();
  LogicalResult checkSizes();
  ProgramOp createProgram();
  void createArguments();
  void planProbes();
  void probe(unsigned result);
  void finishUpdates();
  void findTouchedArguments();
  LogicalResult checkUpdates();
  void holdArguments();
  LogicalResult checkProbes();
  bool isResultRole(unsigned result);
  DenseMap<Value, Value> findOrigins();
  bool comesFromCommunication(Value value) const;
  Operation *firstComputeReader(Value value);

  ModuleOp module;
  func::FuncOp step;
  SymbolTable symbols;
  nn::ArgTable arguments;
  SmallVector<std::optional<unsigned>> updated; // by result the argument that it replaces
  Placement placement;
  DefinedPositions defined;
  int64_t commStream;
  int64_t rows = 0; // of a full global batch
  dist::MeshAttr mesh;
  ProgramOp program;
  std::optional<RowBuilder> build;
  llvm::MapVector<Operation *, llvm::BitVector> touched; // by argument, the positions whose rows do
  DenseMap<Operation *, SmallVector<unsigned>> probesBefore, probesAfter;
  SmallVector<unsigned> probesFirst, probesLast;
};

} // namespace

static Logical logicalOf(Attribute attr) {
  auto global = dyn_cast_or_null<dist::GlobalAttr>(attr);
  if (!global || global.getSharding().isReplicated())
    return {};
  return {TypeAttr::get(global.getType()), global.getSharding()};
}

static RankedTensorType globalType(Attribute attr, Type local) {
  auto global = dyn_cast_or_null<dist::GlobalAttr>(attr);
  return global ? global.getType() : cast<RankedTensorType>(local);
}

// Arguments

LogicalResult Lowering::checkRoles() {
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    if (!isa<RankedTensorType>(step.getArgument(i).getType()))
      return step.emitOpError() << "argument " << i
                                << " must be a tensor, got: " << step.getArgument(i).getType();
    if (nn::getArgRole(step, i) == nn::ArgRole::None)
      return step.emitOpError() << "argument " << i << " must say what it is: nn.input, nn.param, "
                                << "nn.buffer, nn.state, nn.step or nn.valid_rows";
  }
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (!isResultRole(i) && !updated[i])
      return step.emitOpError() << "result " << i << " must say what it is: nn.loss, nn.metric, "
                                << "nn.output, nn.grad or nn.updates";
  return success();
}

LogicalResult Lowering::findBatch() {
  FailureOr<int64_t> found = nn::getBatchRows(step, [&](unsigned i) {
    return globalType(step.getArgAttr(i, dist::DistDialect::kGlobalAttr), step.getArgument(i).getType());
  });
  rows = found.value_or(0);
  return found;
}

/// Offsets are 64-bit integers, so all storage together, reused or not, must be well below 2^63.
LogicalResult Lowering::checkSizes() {
  constexpr int64_t kMaxBytes = int64_t(1) << 62;
  int64_t total = 0;
  auto exceeds = [&](int64_t bytes) {
    if (bytes > kMaxBytes || int64_t(llvm::alignTo(bytes, kBufferAlignment)) > kMaxBytes - total)
      return true;
    total += llvm::alignTo(bytes, kBufferAlignment);
    return false;
  };
  llvm::MapVector<int64_t, int64_t> ends; // of the buckets so far, in bytes, by group
  auto check = [&](Operation *op, TypeRange types) -> LogicalResult {
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        continue;
      auto emitError = [&] { return op->emitOpError(); };
      if (!tensor.hasStaticShape() || llvm::is_contained(tensor.getShape(), 0))
        return emitError() << "a tensor of a step must have a static shape and elements, got: " << type;
      if (failed(BufferType::verifyElement(emitError, tensor.getElementType())))
        return failure();
      int64_t bytes = elementBytes(tensor.getElementType());
      bool overflows = false;
      for (int64_t size : tensor.getShape())
        overflows |= llvm::MulOverflow(bytes, size, bytes);
      // Buckets share the storage of their group.
      if (auto pack = dyn_cast<dist::PackOp>(op)) {
        int64_t &end = ends[pack.getGroup()];
        int64_t known = end, at = elementBytes(tensor.getElementType());
        overflows |= llvm::MulOverflow(at, int64_t(pack.getAt()), at) || llvm::AddOverflow(bytes, at, bytes);
        end = std::max(end, bytes);
        bytes = end - known;
      }
      if (overflows || exceeds(bytes)) {
        auto diag = op->emitOpError() << "storage of a step must fit 2^62 bytes, exceeded by: " << type;
        if (auto pack = dyn_cast<dist::PackOp>(op))
          diag << " at element " << pack.getAt() << " of its group";
        return diag;
      }
    }
    return success();
  };
  if (failed(check(step, step.getArgumentTypes())))
    return failure();
  for (Operation &op : step.getBody().front()) {
    if (failed(check(&op, op.getResultTypes())))
      return failure();
    int64_t workspace = 0;
    if (auto call = dyn_cast<CallOp>(op)) {
      if (auto kernel = symbols.lookup<func::FuncOp>(call.getKernel()))
        workspace = getWorkspaceBytes(kernel);
    } else if (auto lowering = dyn_cast<LoweringOpInterface>(op)) {
      workspace = lowering.getWorkspaceBytes();
    }
    if (exceeds(workspace))
      return op.emitOpError()
             << "storage of a step must fit 2^62 bytes, exceeded by a workspace of " << workspace
             << " bytes";
  }
  return success();
}

static ArgKind kindOf(nn::ArgRole role) {
  switch (role) {
  case nn::ArgRole::Param:
    return ArgKind::param;
  case nn::ArgRole::Buffer:
    return ArgKind::buffer;
  case nn::ArgRole::State:
    return ArgKind::state;
  case nn::ArgRole::Step:
    return ArgKind::step;
  case nn::ArgRole::ValidRows:
    return ArgKind::valid_rows;
  case nn::ArgRole::Seed:
    return ArgKind::seed;
  case nn::ArgRole::Input:
  case nn::ArgRole::None: // refused by checkRoles
    return ArgKind::input;
  }
  llvm_unreachable("every role is listed");
}

void Lowering::createArguments() {
  // Parameters and buffers, then state, then inputs: what lives from step to step lies first.
  SmallVector<unsigned> order(step.getNumArguments());
  std::iota(order.begin(), order.end(), 0);
  auto group = [&](unsigned i) {
    nn::ArgRole role = nn::getArgRole(step, i);
    if (role == nn::ArgRole::Param || role == nn::ArgRole::Buffer)
      return 0;
    return nn::isUpdatable(role) ? 1 : 2;
  };
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return group(a) < group(b); });
  OpBuilder &builder = build->getBuilder();
  for (unsigned i : order) {
    auto type = cast<RankedTensorType>(step.getArgument(i).getType());
    unsigned storage = placement.placeOf(step.getArgument(i)).storage;
    Logical logical = logicalOf(step.getArgAttr(i, dist::DistDialect::kGlobalAttr));
    std::optional<nn::InitialValue> initial = nn::getInitialValue(step, i);
    auto [kind, a, b] = initial.value_or(nn::InitialValue());
    // State is kept as its parameter is, where it has as many elements.
    auto state = step.getArgAttrOfType<nn::StateAttr>(i, nn::NNDialect::kStateAttr);
    unsigned kept = state ? arguments.find(state.getOf()).value_or(i) : i;
    std::optional<ArrayRef<int64_t>> file = nn::getFileShape(step, kept);
    RankedTensorType whole = logical.type ? cast<RankedTensorType>(logical.type.getValue()) : type;
    if (file && state && ShapedType::getNumElements(*file) != whole.getNumElements())
      file.reset();
    std::optional<nn::IndexRange> range = nn::getIndexRange(step, i);
    bool mayIgnore = range && range->ignored;
    auto bucket = step.getArgAttrOfType<dist::BucketAttr>(i, dist::DistDialect::kBucketAttr);
    auto buffer = BufferType::get(type, placement.getStorages()[storage].memory);
    auto argument = builder.create<ArgOp>(
        step.getArgument(i).getLoc(), buffer, kindOf(nn::getArgRole(step, i)),
        nn::getArgName(step, i), state && !bucket ? state.getOf() : StringAttr(), /*offset=*/0, logical.type,
        logical.sharding,
        nn::isBatchedInput(step, i) ? int64_t(nn::getBatchDim(step, i)) : -1, initOf(initial), APFloat(a), APFloat(b),
        file ? builder.getDenseI64ArrayAttr(*file) : nullptr,
        range ? builder.getI64IntegerAttr(range->size) : nullptr,
        mayIgnore ? builder.getI64IntegerAttr(*range->ignored) : nullptr,
        bucket,
        /*master=*/bool(step.getArgAttr(i, nn::NNDialect::kMasterAttr)));
    build->setStorage(storage, argument);
  }
}

// Results

/// What a probe of the result shows; an update is none.
static std::optional<ResultKind> probeKindOf(nn::ResultRole role) {
  switch (role) {
  case nn::ResultRole::Loss:
    return ResultKind::loss;
  case nn::ResultRole::Metric:
    return ResultKind::metric;
  case nn::ResultRole::Output:
    return ResultKind::output;
  case nn::ResultRole::Grad:
    return ResultKind::grad;
  case nn::ResultRole::Updates:
    return std::nullopt;
  }
  llvm_unreachable("every role is listed");
}

bool Lowering::isResultRole(unsigned result) {
  return llvm::any_of(nn::getResultRoles(step, result),
                      [](nn::NamedRole named) { return probeKindOf(named.role).has_value(); });
}

/// Whether the op's result is its operand in another shape. A sum is not: it is whole with its last term.
static bool isReshape(Operation *op) { return lowersAs(op, LoweringKind::View) && !isa<AddToOp>(op); }

/// Of each view, and each unpacked range that is no copy, the value whose bytes it shows.
DenseMap<Value, Value> Lowering::findOrigins() {
  DenseMap<Value, Value> origins;
  auto originOf = [&](Value value) {
    Value origin = origins.lookup(value);
    return origin ? origin : value;
  };
  for (Operation &op : step.getBody().front()) {
    if (!isReshape(&op) && !(isa<dist::UnpackOp>(op) && placement.copiesOf(&op).empty()))
      continue;
    Value origin = originOf(op.getOperand(0));
    if (llvm::all_of(op.getOperands(), [&](Value operand) { return originOf(operand) == origin; }))
      origins[op.getResult(0)] = origin;
  }
  return origins;
}

/// Whether the value is complete only when a row of another stream is.
bool Lowering::comesFromCommunication(Value value) const {
  Operation *def = stripViews(value).getDefiningOp();
  if (!def || commStream == 0 || !isa_and_nonnull<dist::DistDialect>(def->getDialect()))
    return false;
  return !isa<dist::AxisIndexOp, dist::SelectOp>(def) && placement.copiesOf(def).empty();
}

Operation *Lowering::firstComputeReader(Value value) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    user = step.getBody().front().findAncestorOpInBlock(*user);
    Operation *reader = nullptr;
    if (lowersAs(user, LoweringKind::Library) || isa<CallOp, TransferOp, dist::SelectOp>(user) ||
        !placement.copiesOf(user).empty())
      reader = user;
    else if (lowersAs(user, LoweringKind::View) || isa<dist::UnpackOp, dist::WaitOp>(user))
      reader = firstComputeReader(user->getResult(0));
    if (reader && (!first || reader->isBeforeInBlock(first)))
      first = reader;
  }
  return first;
}

/// A part of an argument is read first, before the argument is updated; a result computed on stream 0 right away; one
/// that arrives from another stream where stream 0 waits for it anyhow, so that reading it stops nothing.
void Lowering::planProbes() {
  DenseMap<Value, Value> origins = findOrigins();
  for (auto [index, value] :
       llvm::enumerate(step.getBody().front().getTerminator()->getOperands())) {
    if (!isResultRole(index))
      continue;
    Value root = value;
    while (isReshape(root.getDefiningOp()))
      root = root.getDefiningOp()->getOperand(0);
    Value origin = origins.lookup(root);
    if (!origin)
      origin = root;
    if (isa<BlockArgument>(origin))
      probesFirst.push_back(index);
    else if (!comesFromCommunication(origin))
      probesAfter[origin.getDefiningOp()].push_back(index);
    else if (Operation *reader = firstComputeReader(root))
      probesBefore[reader].push_back(index);
    else
      probesLast.push_back(index);
  }
}

void Lowering::probe(unsigned index) {
  Value value = step.getBody().front().getTerminator()->getOperand(index);
  Logical logical = logicalOf(step.getResultAttr(index, dist::DistDialect::kGlobalAttr));
  OpBuilder &builder = build->getBuilder();
  for (auto [role, name] : nn::getResultRoles(step, index)) {
    std::optional<ResultKind> kind = probeKindOf(role);
    if (!kind)
      continue;
    auto batchDim = step.getResultAttrOfType<IntegerAttr>(index, nn::kBatchDimAttr);
    auto row = builder.create<ProbeOp>(
        value.getLoc(), Type(), *kind, name, build->bufferOf(value), logical.type, logical.sharding,
        batchDim ? batchDim.getInt() : -1,
        step.getResultAttrOfType<dist::BucketAttr>(index, dist::DistDialect::kBucketAttr), 0, StringAttr());
    if (DenseI64ArrayAttr at = defined.of(value))
      row->setAttr(ExecDialect::kAtAttr, at);
  }
}

/// The positions whose rows touch an argument's storage.
static llvm::BitVector findTouched(const PositionClasses &classes, Value storage, int64_t positions) {
  llvm::BitVector touched(positions);
  SmallVector<Value> buffers;
  SmallVector<Operation *> work(storage.getUsers().begin(), storage.getUsers().end());
  while (!work.empty() && !touched.all()) {
    Operation *user = work.pop_back_val();
    if (auto view = dyn_cast<ViewOp>(user)) {
      llvm::append_range(work, view->getUsers());
      continue;
    }
    for (unsigned number : classes.of(user)) {
      ArrayRef<int64_t> members = classes[number].positions;
      if (touched.test(members.front()))
        continue;
      buffers.clear();
      getAccesses(cast<RowOpInterface>(user), members.front(), buffers, buffers);
      if (llvm::any_of(buffers, [&](Value buffer) { return getByteRange(buffer).storage == storage.getDefiningOp(); }))
        for (int64_t position : members)
          touched.set(position);
    }
  }
  return touched;
}

void Lowering::findTouchedArguments() {
  if (!mesh)
    return;
  PositionClasses classes(program);
  for (auto argument : program.getBody().getOps<ArgOp>())
    touched[argument] = findTouched(classes, argument.getResult(), mesh.getNumDevices());
}

/// What a position reads of an argument from step to step, it must be given anew where others are.
LogicalResult Lowering::checkUpdates() {
  for (auto [index, value, number] :
       llvm::enumerate(step.getBody().front().getTerminator()->getOperands(), updated)) {
    if (!number || !defined.isLimited(value))
      continue;
    DenseI64ArrayAttr at = defined.of(value);
    for (unsigned position : touched[build->bufferOf(step.getArgument(*number)).getDefiningOp()].set_bits())
      if (!llvm::is_contained(at.asArrayRef(), position))
        return emitError(value.getLoc())
               << "the new value of " << step.getResultAttrOfType<StringAttr>(index, nn::NNDialect::kUpdatesAttr)
               << " must be at every mesh position that uses the argument, and is not at position " << position
               << "; send it there, or compute it there, too";
  }
  return success();
}

/// Updates that no kernel could write in place are copied at the end, when nobody reads the old
/// value.
void Lowering::finishUpdates() {
  Operation *yield = step.getBody().front().getTerminator();
  struct Pending {
    Value source, target;
    DenseI64ArrayAttr at;
  };
  SmallVector<Pending> pending;
  for (auto [value, number] : llvm::zip_equal(yield->getOperands(), updated)) {
    if (!number)
      continue;
    Value argument = step.getArgument(*number);
    Place source = placement.placeOf(value), target = placement.placeOf(argument);
    if (source.storage == target.storage)
      continue;
    DenseI64ArrayAttr at = defined.of(value);
    Value from = build->bufferOf(value);
    // Another argument's storage may itself be replaced now.
    if (placement.getStorages()[source.storage].argument >= 0) {
      auto type = cast<RankedTensorType>(value.getType());
      Memory memory = placement.getStorages()[source.storage].memory;
      unsigned storage = placement.addStorage(type, StorageClass::workspace, memory);
      Value staged = build->rangeOf({storage, 0}, type.getShape());
      build->copy(value.getLoc(), from, staged, "keep", at);
      from = staged;
    }
    pending.push_back({from, build->bufferOf(argument), at});
  }
  for (auto [from, to, at] : pending)
    build->copy(from.getLoc(), from, to, "update", at);
}

/// The axes that cut what an argument or result holds into parts: for each tensor in a bucket, and without one.
static SmallVector<SmallVector<StringAttr>> findCuts(std::optional<dist::ShardingAttr> sharding, int64_t rank,
                                                     std::optional<dist::BucketAttr> bucket) {
  auto add = [](SmallVector<StringAttr> &axes, dist::ShardingAttr from, int64_t dims) {
    for (int64_t dim = 0; dim < dims; ++dim)
      llvm::append_range(axes, from.getDimAxes(dim));
  };
  SmallVector<StringAttr> whole;
  if (sharding)
    add(whole, *sharding, rank);
  SmallVector<SmallVector<StringAttr>> cuts = {whole};
  for (dist::MemberAttr member : bucket ? bucket->getMembers() : ArrayRef<dist::MemberAttr>())
    if (dist::GlobalAttr global = member.getGlobal())
      add(cuts.emplace_back(whole), global.getSharding(), member.getType().getRank());
  return cuts;
}

/// The positions whose part, of those that `axes` cut, is at none of `holders`.
static llvm::BitVector findBereft(dist::MeshAttr mesh, ArrayRef<StringAttr> axes, const llvm::BitVector &holders) {
  llvm::BitVector held(mesh.getSize(axes)), bereft(holders.size());
  for (unsigned position : holders.set_bits())
    held.set(mesh.getIndexAlong(position, axes));
  for (unsigned position = 0; position < holders.size(); ++position)
    bereft[position] = !held.test(mesh.getIndexAlong(position, axes));
  return bereft;
}

/// An argument is held where some row touches it, and a part of what is kept that none touches at every position which
/// that is the part of.
void Lowering::holdArguments() {
  if (!mesh)
    return;
  for (auto &[op, positions] : touched) {
    auto argument = cast<ArgOp>(op);
    llvm::BitVector held = positions;
    if (held.none())
      continue;
    if (argument.getKind() != ArgKind::input)
      for (ArrayRef<StringAttr> axes :
           findCuts(argument.getSharding(), argument.getResult().getType().getShape().size(), argument.getBucket()))
        held |= findBereft(mesh, axes, held);
    if (!held.all())
      argument->setAttr(ExecDialect::kAtAttr,
                        DenseI64ArrayAttr::get(module.getContext(), llvm::to_vector_of<int64_t>(held.set_bits())));
  }
}

/// Whoever asks for a result gets all of it.
LogicalResult Lowering::checkProbes() {
  for (auto probe : program.getBody().getOps<ProbeOp>()) {
    if (!probe->hasAttr(ExecDialect::kAtAttr))
      continue;
    llvm::BitVector holders(mesh.getNumDevices());
    for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
      holders[position] = runsAt(probe, position);
    for (ArrayRef<StringAttr> axes :
         findCuts(probe.getSharding(), probe.getInput().getType().getShape().size(), probe.getBucket()))
      if (llvm::BitVector bereft = findBereft(mesh, axes, holders); bereft.any())
        return probe.emitError() << "each part of result '" << probe.getResultName()
                                 << "' must be at a mesh position, and that of position " << bereft.find_first()
                                 << " is at none; compute it there, or leave its axis out of its sharding";
  }
  return success();
}

// The program

ProgramOp Lowering::createProgram() {
  OpBuilder builder(step);
  Mode mode = Mode::infer;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (step.getResultAttr(i, nn::NNDialect::kLossAttr))
      mode = Mode::train;
  auto bytes = BytesAttr::get(module.getContext(), 0, 0, 0, 0, 0);
  if (isEvaluation(step))
    mode = Mode::eval;
  // The step's name is free once the step is gone.
  auto result = builder.create<ProgramOp>(step.getLoc(), step.getSymName(), mode, 0, rows, bytes);
  result.getBody().emplaceBlock();
  return result;
}

LogicalResult Lowering::run() {
  if (dist::MeshOp op = dist::lookupMesh(step))
    mesh = op.getMesh();
  if (failed(checkRoles()) || failed(findBatch()) || failed(checkSizes()) ||
      failed(defined.find(step, mesh)) || failed(placement.run()))
    return failure();
  program = createProgram();
  build.emplace(program, placement, symbols, commStream);
  if (failed(build->assignStreams(step, mesh)))
    return failure();
  createArguments();
  planProbes();

  llvm::for_each(probesFirst, [&](unsigned i) { probe(i); });
  for (Operation &op : step.getBody().front().without_terminator()) {
    for (unsigned i : probesBefore.lookup(&op))
      probe(i);
    if (failed(build->build(&op, mesh)))
      return failure();
    for (unsigned i : probesAfter.lookup(&op))
      probe(i);
  }
  llvm::for_each(probesLast, [&](unsigned i) { probe(i); });
  finishUpdates();
  findTouchedArguments();
  if (failed(checkUpdates()))
    return failure();
  step.erase();
  holdArguments();
  if (failed(checkProbes()))
    return failure();

  insertWaits(program, build->getPaced());
  assignOffsets(program);
  return success();
}

namespace {
struct Lower : impl::LowerPassBase<Lower> {
  using LowerPassBase::LowerPassBase;

  void runOnOperation() override {
    FailureOr<SmallVector<func::FuncOp>> steps = findSteps(getOperation());
    if (failed(steps))
      return signalPassFailure();
    for (func::FuncOp step : *steps)
      if (failed(Lowering(getOperation(), step, overlap).run()))
        return signalPassFailure();
  }
};
} // namespace

} // namespace shoal::exec
