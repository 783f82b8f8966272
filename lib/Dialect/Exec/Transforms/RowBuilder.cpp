// One L2 op becomes one row, or several (a batched product that is summed, a copy into a bucket),
// or none (a reshape).
#include "RowBuilder.h"

#include "Peers.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/Transforms/RowContext.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::exec {

// Buffers

Value RowBuilder::rangeOf(Place place, ArrayRef<int64_t> shape) {
  const Storage &storage = placement.getStorages()[place.storage];
  Value &buffer = storages[place.storage];
  if (!buffer) {
    // Declared at its first use, which is its first write.
    SmallVector<int64_t> own(storage.shape);
    if (ShapedType::getNumElements(own) != storage.elements)
      own = {storage.elements};
    auto type = BufferType::get(builder.getContext(), own, storage.elementType, storage.memory);
    buffer = builder.create<BufferOp>(program.getLoc(), type, storage.storageClass, 0);
  }
  auto type = BufferType::get(builder.getContext(), shape, storage.elementType, storage.memory);
  if (buffer.getType() == type && place.start == 0)
    return buffer;
  Value &view = views[{place.storage, place.start, type}];
  if (!view)
    view = builder.create<ViewOp>(program.getLoc(), type, buffer, place.start);
  return view;
}

Value RowBuilder::bufferOf(Value value) {
  return rangeOf(placement.placeOf(value), dist::getTensorType(value).getShape());
}

static DenseI64ArrayAttr positionsOf(Operation *op) {
  return op->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kAtAttr);
}

void RowBuilder::copy(Location loc, Value from, Value to, StringRef name, DenseI64ArrayAttr at) {
  auto row = builder.create<CopyOp>(loc, Type(), from, to, 0, builder.getStringAttr(name));
  if (at)
    row->setAttr(ExecDialect::kAtAttr, at);
}

/// The buffer of a kernel's operand: a copy at a multiple of 64 when it lies in a bucket and the
/// kernel was not compiled for that.
Value RowBuilder::aligned(Operation *reader, Value tensor, bool mayBeUnaligned) {
  if (mayBeUnaligned || placement.isAligned(placement.placeOf(tensor)))
    return bufferOf(tensor);
  Value &made = alignedCopies[{tensor, positionsOf(reader)}];
  if (!made) {
    Memory memory = placement.getStorages()[placement.placeOf(tensor).storage].memory;
    unsigned storage = placement.addStorage(dist::getTensorType(tensor), StorageClass::workspace, memory);
    Value target = rangeOf({storage, 0}, dist::getTensorType(tensor).getShape());
    copy(reader->getLoc(), bufferOf(tensor), target, "align", positionsOf(reader));
    made = target;
  }
  return made;
}

// Kernels and library calls

void RowBuilder::call(CallOp op) {
  auto kernel = symbols.lookup<func::FuncOp>(op.getKernel());
  SmallVector<int64_t> inplace = getInplace(kernel);
  SmallVector<Value> inputs, outputs;
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    inputs.push_back(
        aligned(op, input, bool(kernel.getArgAttr(i, ExecDialect::kUnalignedAttr))));
  for (auto [result, operand] : llvm::zip_equal(op.getResults(), inplace))
    if (operand < 0)
      outputs.push_back(bufferOf(result));
  bool overwrites = llvm::any_of(inplace, [](int64_t operand) { return operand >= 0; });
  builder.create<LaunchOp>(op.getLoc(), Type(), op.getKernelAttr(), inputs, outputs,
                           workspace(getWorkspaceBytes(kernel), getMemory(kernel)),
                           overwrites ? builder.getDenseI64ArrayAttr(inplace) : nullptr,
                           builder.getI64IntegerAttr(0), StringAttr());
}

Value RowBuilder::workspace(int64_t bytes, Memory memory) {
  if (bytes == 0)
    return {};
  auto type = RankedTensorType::get({int64_t(llvm::divideCeil(bytes, 4))}, builder.getF32Type());
  return rangeOf({placement.addStorage(type, StorageClass::workspace, memory), 0}, type.getShape());
}

namespace {
/// What the rows of one library call are built from.
class LibraryRows : public RowContext {
public:
  LibraryRows(RowBuilder &rows, Placement &placement, Operation *op, Value workspace)
      : rows(rows), placement(placement), op(op), workspace(workspace) {}

  OpBuilder &getBuilder() override { return rows.getBuilder(); }
  Value bufferOf(Value tensor) override { return rows.bufferOf(tensor); }
  Value rangeOf(Value tensor, int64_t start, ArrayRef<int64_t> shape) override {
    Place place = placement.placeOf(tensor);
    return rows.rangeOf({place.storage, place.start + start}, shape);
  }
  bool adds() override { return findSum(op->getResult(0)); }
  Value getWorkspace() override { return workspace; }

private:
  RowBuilder &rows;
  Placement &placement;
  Operation *op;
  Value workspace;
};
} // namespace

LogicalResult RowBuilder::library(LoweringOpInterface op) {
  LibraryRows rows(*this, placement, op, workspace(op.getWorkspaceBytes()));
  return op.lowerToRows(rows);
}

// Communication

/// "all_reduce {data} bucket 0".
StringAttr RowBuilder::nameOf(Operation *op, dist::AxesAttr axes) {
  std::string name = (op->getName().stripDialect() + " {").str();
  llvm::interleave(
      axes.getAxes(), [&](StringAttr axis) { name += axis.getValue(); }, [&] { name += ","; });
  name += "}";
  if (op->getNumOperands() && op->getOperand(0).getDefiningOp<dist::PackOp>())
    name += " bucket " + std::to_string(buckets++);
  return builder.getStringAttr(name);
}

/// Libraries move contiguous equal chunks: dimension 0 of one buffer is `ranks` times that of the
/// other, all else is equal.
static LogicalResult checkChunks(Operation *op, Value small, Value large, int64_t ranks) {
  RankedTensorType from = dist::getTensorType(small), to = dist::getTensorType(large);
  SmallVector<int64_t> wanted(from.getShape());
  if (!wanted.empty())
    wanted[0] *= ranks;
  if (wanted.empty() || ArrayRef<int64_t>(wanted) != to.getShape())
    return op->emitOpError() << "must act on equal chunks of dimension 0 over " << ranks
                             << " ranks (run dist-expand-collectives), got: " << from << " and "
                             << to;
  return success();
}

LogicalResult RowBuilder::collective(Operation *op, dist::MeshAttr mesh) {
  auto collective = cast<dist::CollectiveOpInterface>(op);
  dist::AxesAttr axes = collective.getAxesAttr();
  int64_t ranks = mesh.getSize(axes.getAxes());
  Location loc = op->getLoc();
  StringAttr name = nameOf(op, axes);
  StringAttr reason = dist::getReasonText(collective.getReasonAttr());
  Value input = op->getOperand(0), result = op->getResult(0);
  auto onDim0 = [&](int64_t dim, Value small, Value large) -> LogicalResult {
    if (dim != 0)
      return op->emitOpError() << "must act on dimension 0 (run dist-expand-collectives), got: "
                               << dim;
    return checkChunks(op, small, large, ranks);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::AllReduceOp reduce) -> LogicalResult {
        builder.create<AllReduceOp>(loc, Type(), axes, reduce.getKind(), bufferOf(input),
                                    bufferOf(result), reason, commStream, name);
        return success();
      })
      .Case([&](dist::AllGatherOp gather) -> LogicalResult {
        if (failed(onDim0(gather.getDim(), input, result)))
          return failure();
        builder.create<AllGatherOp>(loc, Type(), axes, bufferOf(input), bufferOf(result), reason,
                                    commStream, name);
        return success();
      })
      .Case([&](dist::ReduceScatterOp scatter) -> LogicalResult {
        if (failed(onDim0(scatter.getDim(), result, input)))
          return failure();
        builder.create<ReduceScatterOp>(loc, Type(), axes, scatter.getKind(), bufferOf(input),
                                        bufferOf(result), reason, commStream, name);
        return success();
      })
      .Case([&](dist::AllToAllOp exchange) -> LogicalResult {
        // Row i of the input goes to position i; the result is what arrives, one after another.
        RankedTensorType in = dist::getTensorType(input), out = dist::getTensorType(result);
        if (in.getRank() != 2 || in.getDimSize(0) != ranks || exchange.getSplit() != 0 ||
            exchange.getConcat() != 1 || out.getNumElements() != in.getNumElements())
          return op->emitOpError()
                 << "must act on one row per rank, " << ranks
                 << " rows (run dist-expand-collectives), got: " << in << " to " << out;
        builder.create<AllToAllOp>(loc, Type(), axes, bufferOf(input), bufferOf(result), reason,
                                   commStream, name);
        return success();
      })
      .Case([&](dist::BroadcastOp broadcast) -> LogicalResult {
        builder.create<BroadcastOp>(loc, Type(), axes, broadcast.getRoot(), bufferOf(input),
                                    bufferOf(result), reason, commStream, name);
        return success();
      })
      .Case([&](dist::ScatterOp scatter) -> LogicalResult {
        if (failed(checkChunks(op, result, input, ranks)))
          return failure();
        builder.create<ScatterOp>(loc, Type(), axes, scatter.getRoot(), bufferOf(input),
                                  bufferOf(result), reason, commStream, name);
        return success();
      })
      .Case([&](dist::GatherOp gather) -> LogicalResult {
        if (failed(checkChunks(op, input, result, ranks)))
          return failure();
        builder.create<GatherOp>(loc, Type(), axes, gather.getRoot(), bufferOf(input),
                                 bufferOf(result), reason, commStream, name);
        return success();
      })
      .Case<dist::CollectivePermuteOp, dist::PermuteStartOp>([&](auto permute) -> LogicalResult {
        auto own = permuteStreams.find(op);
        int64_t stream = own == permuteStreams.end() ? commStream : own->second;
        builder.create<PermuteOp>(loc, Type(), axes, permute.getSources(), permute.getTargets(), bufferOf(input),
                                  bufferOf(result), reason, stream, name);
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        return op->emitOpError() << "has no row (run dist-expand-collectives)";
      });
}

/// Sends and receives that one row starts together.
LogicalResult RowBuilder::messages(Location loc, ArrayRef<Operation *> ops, dist::MeshAttr mesh) {
  SmallVector<Value> sends, recvs;
  SmallVector<Attribute> targets, sources;
  std::string name, reason, scope;
  llvm::BitVector takePart(mesh.getNumDevices());
  for (Operation *op : ops) {
    dist::AxesAttr axes = cast<dist::CollectiveOpInterface>(op).getAxesAttr();
    auto send = dyn_cast<dist::SendOp>(op);
    Value peer = send ? send.getPeer() : cast<dist::RecvOp>(op).getPeer();
    FailureOr<SmallVector<int64_t>> peers = evaluatePeers(op, peer, axes.getAxes(), mesh);
    if (failed(peers))
      return failure();
    for (auto [position, peer] : llvm::enumerate(*peers))
      if (peer >= 0)
        takePart.set(position);
    if (send)
      sends.push_back(bufferOf(send.getInput()));
    else
      recvs.push_back(bufferOf(op->getResult(0)));
    (send ? targets : sources).push_back(builder.getDenseI64ArrayAttr(*peers));
    name += (name.empty() ? "" : " ") + op->getName().stripDialect().str();
    if (auto own = op->getAttrOfType<StringAttr>(ExecDialect::kScopeAttr))
      scope += (scope.empty() ? "" : " ") + own.str();
    if (StringAttr text = dist::getReasonText(cast<dist::CollectiveOpInterface>(op).getReasonAttr()))
      reason += (reason.empty() ? "" : "; ") + text.getValue().str();
  }
  auto stream = messageStreams.find(ops.front());
  bool isAsync = stream != messageStreams.end();
  auto row = builder.create<PointToPointOp>(loc, Type(), sends, recvs, builder.getArrayAttr(targets),
                                            builder.getArrayAttr(sources),
                                            reason.empty() ? StringAttr() : builder.getStringAttr(reason),
                                            isAsync ? stream->second : commStream, builder.getStringAttr(name));
  if (!scope.empty())
    row->setAttr(ExecDialect::kScopeAttr, builder.getStringAttr(scope));
  if (!takePart.all() && takePart.any())
    row->setAttr(ExecDialect::kAtAttr, builder.getDenseI64ArrayAttr(llvm::to_vector_of<int64_t>(takePart.set_bits())));
  if (isAsync)
    paced.messages.insert(row);
  return success();
}

/// One row, but for messages that do not wait for others: those are a row per stream and micro-batch.
LogicalResult RowBuilder::group(dist::GroupOp op, dist::MeshAttr mesh) {
  llvm::MapVector<std::pair<int64_t, Attribute>, SmallVector<Operation *>> rows;
  for (Operation &inner : op.getBody().front().without_terminator()) {
    if (isa<dist::SendOp, dist::RecvOp>(inner)) {
      auto stream = messageStreams.find(&inner);
      if (stream == messageStreams.end())
        rows[{commStream, Attribute()}].push_back(&inner);
      else
        rows[{stream->second, inner.getAttr(dist::kMicrobatchAttr)}].push_back(&inner);
    } else if (!isMemoryEffectFree(&inner) || inner.getNumRegions() ||
               llvm::any_of(inner.getResultTypes(), [](Type type) { return isa<ShapedType>(type); })) {
      return inner.emitOpError() << "cannot stand in a dist.group: only sends, receives and "
                                    "arithmetic of their peers can";
    }
  }
  for (auto &[key, ops] : rows)
    if (failed(messages(op.getLoc(), ops, mesh)))
      return failure();
  return success();
}

/// Streams of messages and permutations, before any row is built.
LogicalResult RowBuilder::assignStreams(func::FuncOp step, dist::MeshAttr mesh) {
  if (commStream == 0 || !mesh)
    return success();
  FailureOr<MessageStreams> streams = findMessageStreams(step, mesh, commStream + 1);
  if (failed(streams))
    return failure();
  messageStreams = std::move(*streams);
  int64_t last = commStream;
  for (auto &[op, stream] : messageStreams)
    last = std::max(last, stream);
  permuteStreams = findPermuteStreams(step, last + 1);
  return success();
}

void RowBuilder::copies(Operation *op) {
  for (const CopyRange &range : placement.copiesOf(op)) {
    Place source = placement.placeOf(range.source);
    source.start += range.begin;
    copy(range.op->getLoc(), rangeOf(source, {range.elements}), rangeOf(range.target, {range.elements}),
         range.op->getName().stripDialect(), positionsOf(range.op));
  }
}

/// Each position copies what it takes.
void RowBuilder::select(dist::SelectOp op, dist::MeshAttr mesh) {
  Value result = bufferOf(op.getResult());
  for (OpOperand &use : op->getOpOperands()) {
    llvm::BitVector takers = dist::getReadPositions(use, mesh);
    if (takers.none())
      continue;
    SmallVector<int64_t> list(takers.set_bits_begin(), takers.set_bits_end());
    copy(op.getLoc(), bufferOf(use.get()), result, "select",
         takers.all() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(list));
  }
}

// Any op

LogicalResult RowBuilder::build(Operation *op, dist::MeshAttr mesh) {
  Block &rows = program.getBody().front();
  Operation *last = rows.empty() ? nullptr : &rows.back();
  if (failed(buildRows(op, mesh)))
    return failure();
  auto first = last ? std::next(last->getIterator()) : rows.begin();
  if (DenseI64ArrayAttr at = positionsOf(op))
    for (Operation &row : llvm::make_range(first, rows.end()))
      if (isa<RowOpInterface>(row) && !row.hasAttr(ExecDialect::kAtAttr))
        row.setAttr(ExecDialect::kAtAttr, at);
  copies(op);
  bool reduces = isa<dist::AllReduceOp, dist::ReduceScatterOp>(op) && op->getOperand(0).getDefiningOp<dist::PackOp>();
  auto microbatch = op->getAttrOfType<IntegerAttr>(dist::kMicrobatchAttr);
  Attribute scope = op->getAttr(ExecDialect::kScopeAttr);
  for (Operation &row : llvm::make_range(last ? std::next(last->getIterator()) : rows.begin(), rows.end())) {
    if (!isa<RowOpInterface>(row))
      continue;
    // A permutation in flight starts where the program says so: a hop early would take memory early.
    if (dist::isFetch(op) || permuteStreams.contains(op))
      paced.fetches.insert(&row);
    if (reduces)
      paced.reductions.insert(&row);
    if (scope && !row.hasAttr(ExecDialect::kScopeAttr))
      row.setAttr(ExecDialect::kScopeAttr, scope);
    if (microbatch)
      paced.microbatches[&row] = microbatch.getInt();
  }
  return success();
}

LogicalResult RowBuilder::buildRows(Operation *op, dist::MeshAttr mesh) {
  if (isa<dist::WaitOp>(op))
    return success();
  if (auto kernel = dyn_cast<CallOp>(op))
    return call(kernel), success();
  if (auto transfer = dyn_cast<TransferOp>(op)) {
    copy(op->getLoc(), bufferOf(transfer.getInput()), bufferOf(transfer.getResult()),
         transfer.getMemory() == Memory::host ? "to_host" : "to_device");
    return success();
  }
  if (auto lowering = dyn_cast<LoweringOpInterface>(op))
    return lowering.getLoweringKind() == LoweringKind::View ? success() : library(lowering);
  if (isa<dist::PackOp, dist::UnpackOp>(op))
    return success();
  if (isa_and_nonnull<dist::DistDialect>(op->getDialect())) {
    if (!mesh)
      return op->emitOpError() << "names mesh axes, but the module has no dist.mesh";
    if (isa<dist::PositionConstantOp>(op) && !isa<ShapedType>(op->getResult(0).getType()))
      return success();
    if (auto choice = dyn_cast<dist::SelectOp>(op))
      return select(choice, mesh), success();
    if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
      if (isa<RankedTensorType>(index.getResult().getType()))
        builder.create<AxisIndexOp>(op->getLoc(), Type(), index.getAxes(), index.getScale(),
                                    bufferOf(index.getResult()), 0, StringAttr());
      return success();
    }
    if (isa<dist::SendOp, dist::RecvOp>(op))
      return messages(op->getLoc(), op, mesh);
    if (auto inner = dyn_cast<dist::GroupOp>(op))
      return group(inner, mesh);
    if (auto barrier = dyn_cast<dist::BarrierOp>(op)) {
      builder.create<BarrierOp>(op->getLoc(), Type(), barrier.getAxes(),
                                dist::getReasonText(barrier.getReasonAttr()), commStream,
                                nameOf(op, barrier.getAxes()));
      return success();
    }
    if (isa<dist::CollectiveOpInterface>(op) && op->getNumOperands() == 1 &&
        op->getNumResults() == 1)
      return collective(op, mesh);
    return op->emitOpError() << "has no row (run dist-partition and dist-expand-collectives)";
  }
  if (op->getNumRegions())
    return op->emitOpError() << "cannot be lowered: a rank program is one straight line (run "
                                "dist-fold-control-flow)";
  // Arithmetic on positions is folded where it is used.
  if (isMemoryEffectFree(op) &&
      llvm::none_of(op->getResultTypes(), [](Type type) { return isa<ShapedType>(type); }))
    return success();
  return op->emitOpError() << "has no row in a rank program";
}

} // namespace shoal::exec
