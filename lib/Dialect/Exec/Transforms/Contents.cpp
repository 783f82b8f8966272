// Follows which bytes are written, for all mesh positions at once. Rows with `exec.at` write at the
// positions that run them, messages where they arrive. Kernels and copies have no effect but their
// results, so they run everywhere, also on bytes that a position was not given: what they make of those
// counts as not written there. Rows that others see (communication, results, updates of arguments)
// need all that they read.
#include "Contents.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace shoal::exec {
namespace {

using llvm::BitVector;

/// Byte ranges: ends by begins, with a gap between neighbours.
class Ranges {
public:
  bool covers(int64_t from, int64_t to) const {
    auto it = ranges.upper_bound(from);
    return from == to || (it != ranges.begin() && to <= std::prev(it)->second);
  }
  void add(int64_t from, int64_t to) {
    auto it = ranges.upper_bound(from);
    if (it != ranges.begin() && from <= std::prev(it)->second)
      from = (--it)->first;
    for (; it != ranges.end() && it->first <= to; it = ranges.erase(it))
      to = std::max(to, it->second);
    ranges[from] = to;
  }
  void remove(int64_t from, int64_t to) {
    auto it = ranges.lower_bound(from);
    if (it != ranges.begin() && from < std::prev(it)->second)
      --it;
    while (it != ranges.end() && it->first < to) {
      auto [begin, end] = *it;
      it = ranges.erase(it);
      if (begin < from)
        ranges[begin] = from;
      if (to < end)
        it = ranges.emplace(to, end).first;
    }
  }

private:
  std::map<int64_t, int64_t> ranges;
};

/// A buffer that a row reads or writes, and the positions that do; no positions: all that run the row.
struct Access {
  ByteRange range;
  std::optional<BitVector> at;
  bool isAt(unsigned position) const { return !at || at->test(position); }
};

/// Results of a row, and what they are made of.
struct Flow {
  SmallVector<Access, 2> reads, writes;
};

class Contents {
public:
  Contents(ProgramOp program, const SymbolTable &kernels) : program(program), kernels(kernels) {
    if (dist::MeshOp op = dist::lookupMesh(program))
      mesh = op.getMesh();
    positions = mesh ? mesh.getNumDevices() : 1;
  }
  LogicalResult run();

private:
  SmallVector<Flow, 1> flowsOf(RowOpInterface row);
  SmallVector<Flow, 1> flowsOf(LaunchOp launch);
  ArrayRef<BitVector> dependencesOf(func::FuncOp kernel);
  BitVector positionsOf(dist::AxesAttr axes, ArrayRef<int64_t> indices);
  void groupPositions();
  const Access *findLack(const Flow &flow, unsigned number);
  LogicalResult check(RowOpInterface row);

  ProgramOp program;
  const SymbolTable &kernels;
  dist::MeshAttr mesh;
  unsigned positions;
  SmallVector<SmallVector<unsigned>> classes; // positions that are given the same
  DenseMap<Operation *, SmallVector<Flow, 1>> flows;
  DenseMap<Operation *, SmallVector<Ranges, 1>> written; // per storage and class
  DenseMap<Operation *, SmallVector<BitVector>> dependences;
};

} // namespace

/// The arguments that each result of a kernel is made of.
ArrayRef<BitVector> Contents::dependencesOf(func::FuncOp kernel) {
  auto [it, isNew] = dependences.try_emplace(kernel);
  if (!isNew)
    return it->second;
  for (unsigned result = 0; result < kernel.getNumResults(); ++result) {
    BitVector arguments(kernel.getNumArguments(), true);
    if (!kernel.isExternal()) {
      arguments.reset();
      SetVector<Operation *> slice;
      Value value = kernel.getBody().front().getTerminator()->getOperand(result);
      BackwardSliceOptions options;
      options.omitBlockArguments = true;
      getBackwardSlice(value, &slice, options);
      auto mark = [&](Value used) {
        if (auto argument = dyn_cast<BlockArgument>(used))
          arguments.set(argument.getArgNumber());
      };
      mark(value);
      if (Operation *op = value.getDefiningOp())
        slice.insert(op);
      for (Operation *op : slice)
        llvm::for_each(op->getOperands(), mark);
    }
    it->second.push_back(std::move(arguments));
  }
  return it->second;
}

static Access accessOf(Value buffer) { return {getByteRange(buffer), std::nullopt}; }

/// One flow per result: a kernel may compute several that have nothing to do with each other.
SmallVector<Flow, 1> Contents::flowsOf(LaunchOp launch) {
  auto kernel = kernels.lookup<func::FuncOp>(launch.getKernel());
  SmallVector<int64_t> inplace = getInplace(kernel);
  SmallVector<Flow, 1> result;
  size_t output = 0;
  for (auto [operand, dependences] : llvm::zip_equal(inplace, dependencesOf(kernel))) {
    Flow &flow = result.emplace_back();
    for (unsigned input : dependences.set_bits())
      flow.reads.push_back(accessOf(launch.getInputs()[input]));
    flow.writes.push_back(accessOf(operand < 0 ? launch.getOutputs()[output++] : launch.getInputs()[operand]));
  }
  return result;
}

/// The positions with one of these numbers in their group.
BitVector Contents::positionsOf(dist::AxesAttr axes, ArrayRef<int64_t> indices) {
  BitVector at(positions);
  for (unsigned position = 0; position < positions; ++position)
    at[position] = llvm::is_contained(indices, mesh.getIndexAlong(position, axes.getAxes()));
  return at;
}

SmallVector<Flow, 1> Contents::flowsOf(RowOpInterface row) {
  Operation *op = row;
  if (auto launch = dyn_cast<LaunchOp>(op))
    return flowsOf(launch);
  Flow flow;
  SmallVector<Value> reads, writes;
  row.getReads(reads);
  row.getWrites(writes);
  llvm::append_range(flow.reads, llvm::map_range(reads, accessOf));
  llvm::append_range(flow.writes, llvm::map_range(writes, accessOf));
  if (auto messages = dyn_cast<PointToPointOp>(op)) {
    auto restrict = [&](MutableArrayRef<Access> accesses, ArrayAttr peers) {
      for (auto [access, list] : llvm::zip_equal(accesses, peers)) {
        access.at = BitVector(positions);
        for (auto [position, peer] : llvm::enumerate(cast<DenseI64ArrayAttr>(list).asArrayRef()))
          (*access.at)[position] = peer >= 0;
      }
    };
    restrict(flow.reads, messages.getTargets());
    restrict(flow.writes, messages.getSources());
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    flow.reads.front().at = positionsOf(broadcast.getAxes(), int64_t(broadcast.getRoot()));
  } else if (auto scatter = dyn_cast<ScatterOp>(op)) {
    flow.reads.front().at = positionsOf(scatter.getAxes(), int64_t(scatter.getRoot()));
  } else if (auto permute = dyn_cast<PermuteOp>(op)) {
    flow.reads.front().at = positionsOf(permute.getAxes(), permute.getSources()); // others get zeros
  }
  return {std::move(flow)};
}

/// Positions are apart where some row distinguishes them.
void Contents::groupPositions() {
  SmallVector<unsigned> classOf(positions, 0);
  unsigned count = 1;
  auto split = [&](function_ref<bool(unsigned)> holds) {
    std::map<std::pair<unsigned, bool>, unsigned> fresh;
    for (unsigned position = 0; position < positions; ++position)
      classOf[position] =
          fresh.try_emplace({classOf[position], holds(position)}, fresh.size()).first->second;
    count = fresh.size();
  };
  llvm::SmallDenseSet<Attribute> known;
  for (Operation &op : program.getBody().front())
    if (Attribute at = op.getAttr(ExecDialect::kAtAttr); at && known.insert(at).second)
      split([&](unsigned position) { return runsAt(&op, position); });
  for (auto row : program.getBody().front().getOps<RowOpInterface>()) {
    for (const Flow &flow : flows[row])
      for (const Access &access : llvm::concat<const Access>(flow.reads, flow.writes))
        if (access.at)
          split([&](unsigned position) { return access.at->test(position); });
  }
  classes.resize(count);
  for (unsigned position = 0; position < positions; ++position)
    classes[classOf[position]].push_back(position);
}

/// Whether a class of positions has all that a flow reads; what it lacks, if not.
const Access *Contents::findLack(const Flow &flow, unsigned number) {
  for (const Access &read : flow.reads)
    if (read.isAt(classes[number].front()) &&
        !written[read.range.storage][number].covers(read.range.begin, read.range.end))
      return &read;
  return nullptr;
}

LogicalResult Contents::check(RowOpInterface row) {
  bool isSeen = !isa<LaunchOp, GemmOp, CopyOp, AxisIndexOp>(row.getOperation());
  ArrayRef<Flow> parts = flows[row];
  // All is read before anything is written: a kernel may overwrite for one result what another reads.
  SmallVector<BitVector, 1> made; // per part the classes that get a result
  for (const Flow &flow : parts) {
    bool mustHave = isSeen || llvm::any_of(flow.writes, [](const Access &access) {
                      return isa<ArgOp>(access.range.storage);
                    });
    BitVector &has = made.emplace_back(classes.size());
    const Access *lacking = nullptr;
    unsigned first = 0;
    for (unsigned number = 0; number < classes.size(); ++number) {
      if (!runsAt(row, classes[number].front()))
        continue;
      const Access *lack = findLack(flow, number);
      has[number] = !lack;
      if (lack && !lacking) {
        lacking = lack;
        first = classes[number].front();
      }
    }
    if (!lacking || (!mustHave && has.any()))
      continue;
    auto diag = row->emitOpError() << "reads bytes [" << lacking->range.begin << ", "
                                   << lacking->range.end << ") that nothing has written";
    if (classes.size() > 1)
      diag << " at mesh position " << first;
    return diag;
  }
  for (auto [flow, has] : llvm::zip_equal(parts, made))
    for (const Access &write : flow.writes)
      for (auto [number, members] : llvm::enumerate(classes)) {
        if (!runsAt(row, members.front()) || !write.isAt(members.front()))
          continue;
        Ranges &ranges = written[write.range.storage][number];
        if (has[number])
          ranges.add(write.range.begin, write.range.end);
        else
          ranges.remove(write.range.begin, write.range.end);
      }
  return success();
}

LogicalResult Contents::run() {
  Block &body = program.getBody().front();
  for (auto row : body.getOps<RowOpInterface>())
    flows[row] = flowsOf(row);
  groupPositions();
  for (Operation &op : body)
    if (isa<ArgOp, BufferOp>(op)) {
      SmallVector<Ranges, 1> &ranges = written[&op];
      ranges.resize(classes.size());
      if (isa<ArgOp>(op)) {
        ByteRange range = getByteRange(op.getResult(0));
        for (auto [members, known] : llvm::zip_equal(classes, ranges))
          if (runsAt(&op, members.front()))
            known.add(range.begin, range.end);
      }
    }
  for (auto row : body.getOps<RowOpInterface>())
    if (failed(check(row)))
      return failure();
  return success();
}

LogicalResult checkContents(ProgramOp program, const SymbolTable &kernels) {
  return Contents(program, kernels).run();
}

} // namespace shoal::exec
