// The contract of the rank program, derived anew from its text: nothing here is shared with the
// passes that made it.
//
// Order is judged by vector clocks: a row knows, per stream, how many rows have ended before it
// starts. Two accesses to the same bytes, one of them a write, must be ordered; so must the lives
// of two buffers that share bytes. Mesh positions that run and hold the same are judged once. Whether the ranks meet is
// judged by Rendezvous, what each position has been given by Contents.
#include "Contents.h"
#include "Evaluation.h"
#include "Rendezvous.h"

#include "shoal/Dialect/Exec/IR/PositionClasses.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <queue>
#include <set>

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_VERIFYPASS
#include "shoal/passes/ShoalExec.h.inc"

namespace {

constexpr int64_t kMaxStreams = 64;

using Clock = SmallVector<int64_t, 2>;

struct Access {
  Value buffer;
  ByteRange range;
  bool writes;
  DenseI64ArrayAttr peers; // of a message: by position the other end; null for all else
  bool isAt(int64_t position) const { return !peers || peers[position] >= 0; }
  /// Whether some position touches both of a row.
  bool mayMeet(const Access &other) const {
    for (int64_t position = 0; peers && other.peers && position < peers.size(); ++position)
      if (isAt(position) && other.isAt(position))
        return true;
    return !peers || !other.peers;
  }
};

struct Row {
  RowOpInterface op;
  int64_t stream = 0;
  SmallVector<Access> accesses;
};

/// The life of a buffer at some positions, or an argument that they hold.
struct Life {
  ByteRange range;
  Clock last;         // per stream, rows done when its last access there has ended
  Clock known;        // per stream, rows known to have ended before its first access
  unsigned first = 0; // its first row in the program
};

bool overlap(const ByteRange &a, const ByteRange &b) {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end;
}

class ProgramVerifier {
public:
  ProgramVerifier(ProgramOp program, const SymbolTable &symbols)
      : program(program), symbols(symbols), classes(program) {}
  LogicalResult run();

private:
  LogicalResult collect();
  LogicalResult checkStorage(Operation *op, Value buffer, int64_t offset);
  LogicalResult checkPiece(Operation *op, BufferType local, std::optional<Type> global,
                           std::optional<dist::ShardingAttr> sharding);
  LogicalResult checkMembers(Operation *op, std::optional<dist::BucketAttr> bucket, bool isGrad);
  LogicalResult checkMemory(const Row &row);
  LogicalResult checkRanges();
  LogicalResult checkState();
  LogicalResult checkOperands(const Row &row);
  void findSteps();
  LogicalResult checkRows();
  LogicalResult checkAt(unsigned number);
  LogicalResult checkRow(unsigned number);
  LogicalResult checkLives();

  ProgramOp program;
  const SymbolTable &symbols; // of the kernels
  PositionClasses classes;
  SmallVector<SmallVector<Operation *, 0>> steps; // by class
  int64_t numStreams = 1;
  SmallVector<Row> rows;
  DenseMap<Operation *, unsigned> numbers; // row -> its place in `rows`
  SmallVector<std::pair<Operation *, ByteRange>> storages; // ArgOps and BufferOps

  // What is so at the positions that are being looked at.
  int64_t position = 0; // the first of them
  llvm::MapVector<Operation *, Life> lives;
  SmallVector<Clock> now;
  DenseMap<Operation *, Clock> ended; // by row
  SmallVector<SmallVector<unsigned>> onStream; // rows
  llvm::StringSet<> arguments, results, params; // names
  SmallVector<std::pair<Operation *, StringRef>> owners; // what is state, and of which parameter
  /// What buckets hold of the tensors that files know, by whether it is a gradient and by name.
  using Member = std::pair<dist::MemberAttr, Operation *>;
  llvm::MapVector<std::pair<Attribute, unsigned>, SmallVector<Member, 1>> members;
};

} // namespace

// What each op says for itself

LogicalResult ProgramVerifier::checkStorage(Operation *op, Value buffer, int64_t offset) {
  Memory memory = getMemory(buffer);
  int64_t bytes = cast<BufferType>(buffer.getType()).getNumBytes(), arena = getArenaBytes(program, memory);
  if (offset > arena || bytes > arena - offset)
    return op->emitOpError() << "must lie inside the " << (memory == Memory::host ? "host's " : "") << "arena of "
                             << arena << " bytes, got: " << bytes << " bytes at " << offset;
  storages.push_back({op, {op, offset, offset + bytes, memory}});
  return success();
}

LogicalResult ProgramVerifier::checkPiece(Operation *op, BufferType local,
                                          std::optional<Type> global,
                                          std::optional<dist::ShardingAttr> sharding) {
  auto type = global ? cast<RankedTensorType>(*global)
                     : RankedTensorType::get(local.getShape(), local.getElementType());
  if (sharding) {
    dist::MeshOp mesh = dist::lookupMesh(op);
    if (!mesh)
      return op->emitOpError() << "is sharded, but the module has no dist.mesh";
    if (failed(dist::verifySharding(op, *sharding, type, mesh.getMesh())))
      return failure();
    if (!sharding->getUnreducedAxes().empty())
      return op->emitOpError() << "must not hold partial values";
    type = sharding->getLocalType(type, mesh.getMesh());
  }
  if (type.getShape() != local.getShape())
    return op->emitOpError() << "a rank's piece is " << type << ", its buffer is " << local;
  return success();
}

/// What lies in a bucket, or is the argument or result itself, has a name of its own in files.
LogicalResult ProgramVerifier::checkMembers(Operation *op, std::optional<dist::BucketAttr> bucket, bool isGrad) {
  if (!bucket)
    return success();
  for (dist::MemberAttr member : bucket->getMembers()) {
    SmallVector<Member, 1> &known = members[{member.getName(), isGrad}];
    auto inAnother = known.empty() ? dist::MemberAttr() : known.front().first;
    if (inAnother && (member.isWhole() || inAnother.isWhole() || member.getRole() != inAnother.getRole() ||
                      member.getType() != inAnother.getType() || member.getGlobal() != inAnother.getGlobal()))
      return op->emitOpError() << "name is taken by another tensor: " << member.getName();
    known.push_back({member, op});
    if (auto state = dyn_cast<nn::StateAttr>(member.getRole()))
      owners.push_back({op, state.getOf()});
    else if (isa<nn::ParamAttr>(member.getRole()))
      params.insert(member.getName());
    auto local = BufferType::get(member.getType());
    dist::GlobalAttr global = member.getGlobal();
    if (failed(checkPiece(op, local, global ? std::optional<Type>(global.getType()) : std::nullopt,
                          global ? std::optional(global.getSharding()) : std::nullopt)))
      return failure();
  }
  return success();
}

/// Of a tensor that several buckets hold each has another range.
LogicalResult ProgramVerifier::checkRanges() {
  for (auto &[name, known] : members) {
    llvm::stable_sort(known, [](const Member &a, const Member &b) { return a.first.getBegin() < b.first.getBegin(); });
    int64_t next = 0, elements = known.front().first.getType().getNumElements();
    auto refuse = [&](Operation *op, int64_t begin) {
      return op->emitOpError() << "the buckets of " << name.first << " must hold each of its " << elements
                               << " elements once, got: [0:" << next << "] and then what begins at " << begin;
    };
    for (auto [member, op] : known) {
      if (member.getBegin() != next)
        return refuse(op, member.getBegin());
      next = member.getEnd();
    }
    if (next != elements)
      return refuse(known.back().second, elements);
  }
  return success();
}

/// Files say of state whose it is.
LogicalResult ProgramVerifier::checkState() {
  for (auto [op, owner] : owners)
    if (!params.contains(owner))
      return op->emitOpError() << "holds state of \"" << owner << "\", which is no parameter of the program";
  return success();
}

LogicalResult ProgramVerifier::collect() {
  for (Operation &op : program.getBody().front()) {
    if (auto argument = dyn_cast<ArgOp>(op)) {
      if (!arguments.insert(argument.getName()).second)
        return argument.emitOpError()
               << "name is taken by another argument: " << argument.getName();
      if (failed(checkStorage(&op, argument.getResult(), argument.getOffset())) ||
          failed(checkPiece(&op, argument.getResult().getType(), argument.getGlobal(),
                            argument.getSharding())) ||
          failed(checkMembers(&op, argument.getBucket(), /*isGrad=*/false)))
        return failure();
      if (argument.getOf())
        owners.push_back({&op, *argument.getOf()});
      else if (argument.getKind() == ArgKind::param && !argument.getBucket())
        params.insert(argument.getName());
    } else if (auto buffer = dyn_cast<BufferOp>(op)) {
      if (failed(checkStorage(&op, buffer.getResult(), buffer.getOffset())))
        return failure();
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      if (int64_t(wait.getStream()) < 0 || int64_t(wait.getStream()) >= kMaxStreams)
        return wait.emitOpError() << "stream must be in [0, " << kMaxStreams
                                  << "), got: " << int64_t(wait.getStream());
      numStreams = std::max<int64_t>(numStreams, wait.getStream() + 1);
    } else if (auto rowOp = dyn_cast<RowOpInterface>(op)) {
      Row row{rowOp, rowOp.getStreamIndex(), {}};
      if (row.stream < 0 || row.stream >= kMaxStreams)
        return op.emitOpError() << "stream must be in [0, " << kMaxStreams
                                << "), got: " << row.stream;
      if (row.stream != 0 && rowOp.computes())
        return op.emitOpError() << "must run on stream 0, got: " << row.stream;
      if (Value token = rowOp.getSignal(); token && token.use_empty())
        return op.emitOpError() << "signals a token that nobody waits for: needs an exec.wait on it, "
                                   "or no token";
      SmallVector<Value> reads, writes;
      rowOp.getReads(reads);
      rowOp.getWrites(writes);
      auto messages = dyn_cast<PointToPointOp>(op);
      for (auto [number, buffer] : llvm::enumerate(reads))
        row.accesses.push_back({buffer, getByteRange(buffer), false,
                                messages ? cast<DenseI64ArrayAttr>(messages.getTargets()[number]) : nullptr});
      for (auto [number, buffer] : llvm::enumerate(writes))
        row.accesses.push_back({buffer, getByteRange(buffer), true,
                                messages ? cast<DenseI64ArrayAttr>(messages.getSources()[number]) : nullptr});
      for (const Access &access : row.accesses)
        if (!access.range.storage)
          return op.emitOpError() << "operand must be a buffer of the program";
      numStreams = std::max(numStreams, row.stream + 1);
      numbers[&op] = rows.size();
      rows.push_back(std::move(row));
    }
  }
  return success();
}

/// A row works in the device's memory, a kernel in that of who runs it; copies alone lead from one to the other.
LogicalResult ProgramVerifier::checkMemory(const Row &row) {
  Memory memory = Memory::device;
  if (auto launch = dyn_cast<LaunchOp>(*row.op))
    memory = getMemory(symbols.lookup<func::FuncOp>(launch.getKernel()));
  for (const Access &access : row.accesses)
    if (access.range.memory != memory && !isa<CopyOp>(*row.op))
      return RowOpInterface(row.op).emitOpError()
             << "works in the memory of the " << stringifyMemory(memory) << ", got: " << access.buffer.getType()
             << "; an exec.copy brings it there";
  return success();
}

/// What a row writes is apart from everything else it touches, except where it may work in place.
LogicalResult ProgramVerifier::checkOperands(const Row &row) {
  Operation *op = row.op;
  for (const Access &written : row.accesses) {
    if (!written.writes)
      continue;
    for (const Access &other : row.accesses) {
      if (&written == &other || !overlap(written.range, other.range) || !written.mayMeet(other))
        continue;
      bool same = written.range.begin == other.range.begin && written.range.end == other.range.end;
      if (!same || other.writes || !RowOpInterface(row.op).mayWorkInPlace(written.buffer, other.buffer))
        return op->emitOpError() << "writes bytes [" << written.range.begin << ", "
                                 << written.range.end << "), which overlap another operand at ["
                                 << other.range.begin << ", " << other.range.end << ")";
    }
  }
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    // A kernel's in-out operand must not be given a second time as an input.
    SmallVector<Value> written;
    launch.getWrites(written);
    for (Value buffer : written)
      if (int64_t times = llvm::count(launch.getInputs(), buffer); times > 1)
        return op->emitOpError() << "must be given a buffer that it overwrites as one input, got "
                                    "it as "
                                 << times;
    auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
    SmallVector<bool> mayBeUnaligned;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      mayBeUnaligned.push_back(bool(kernel.getArgAttr(i, ExecDialect::kUnalignedAttr)));
    for (auto [i, operand] : llvm::enumerate(getInplace(kernel)))
      if (operand < 0)
        mayBeUnaligned.push_back(bool(kernel.getResultAttr(i, ExecDialect::kUnalignedAttr)));
    mayBeUnaligned.resize(launch->getNumOperands(), false); // the workspace
    for (auto [buffer, unaligned] : llvm::zip_equal(launch->getOperands(), mayBeUnaligned))
      if (int64_t begin = getByteRange(buffer).begin; !unaligned && begin % kBufferAlignment)
        return op->emitOpError() << "buffer must lie at a multiple of " << kBufferAlignment
                                 << " unless the kernel says exec.unaligned, got: " << begin;
  }
  if (auto probe = dyn_cast<ProbeOp>(op)) {
    std::string key = (stringifyResultKind(probe.getKind()) + " " + probe.getResultName()).str();
    if (!results.insert(key).second)
      return op->emitOpError() << "result is probed twice: " << key;
    if (failed(checkMembers(op, probe.getBucket(), /*isGrad=*/true)))
      return failure();
    return checkPiece(op, probe.getInput().getType(), probe.getGlobal(), probe.getSharding());
  }
  return success();
}

// Order

LogicalResult ProgramVerifier::checkRow(unsigned number) {
  Row &row = rows[number];
  Clock &clock = now[row.stream];
  // Rows of other streams that may still run when this one does.
  for (int64_t stream = 0; stream < numStreams; ++stream) {
    if (stream == row.stream)
      continue;
    ArrayRef<unsigned> others = onStream[stream];
    for (unsigned other : others.drop_front(clock[stream]))
      for (const Access &theirs : rows[other].accesses)
        for (const Access &mine : row.accesses)
          if ((mine.writes || theirs.writes) && mine.isAt(position) && theirs.isAt(position) &&
              overlap(mine.range, theirs.range)) {
            auto diag = row.op->emitOpError()
                        << (mine.writes ? "writes" : "reads") << " bytes [" << mine.range.begin
                        << ", " << mine.range.end << ") while a row on stream " << stream << " may "
                        << (theirs.writes ? "write" : "read") << " them; wait for it";
            diag.attachNote(rows[other].op->getLoc()) << "that row is here";
            return diag;
          }
  }
  for (const Access &access : row.accesses) {
    if (!access.isAt(position))
      continue;
    if (auto argument = dyn_cast<ArgOp>(access.range.storage); argument && !runsAt(argument, position)) {
      auto diag = row.op->emitOpError() << (access.writes ? "writes" : "reads") << " \"" << argument.getName()
                                        << "\" at mesh position " << position << ", which does not hold it";
      diag.attachNote(argument.getLoc()) << "exec.at of the argument says where it is";
      return diag;
    }
    auto [at, isNew] = lives.try_emplace(access.range.storage);
    Life &life = at->second;
    if (isNew || life.last.empty()) {
      life.first = number;
      life.known = clock;
      life.last.assign(numStreams, 0);
    }
    for (int64_t stream = 0; stream < numStreams; ++stream)
      life.known[stream] = std::min(life.known[stream], clock[stream]);
    life.last[row.stream] = onStream[row.stream].size() + 1;
  }
  onStream[row.stream].push_back(number);
  clock[row.stream] = onStream[row.stream].size();
  ended[row.op] = clock;
  return success();
}

/// What a row says for itself.
LogicalResult ProgramVerifier::checkRows() {
  for (const Row &row : rows)
    if (failed(checkMemory(row)) || failed(checkOperands(row)))
      return failure();
  return success();
}

/// The order of what a class of positions runs, and what it holds. A row that it does not run ends with those before
/// it.
LogicalResult ProgramVerifier::checkAt(unsigned number) {
  position = classes[number].positions.front();
  now.assign(numStreams, Clock(numStreams, 0));
  onStream.assign(numStreams, {});
  ended.clear();
  lives.clear();
  for (Operation *op : steps[number]) {
    if (auto wait = dyn_cast<WaitOp>(op)) {
      const Clock &theirs = ended.find(wait.getToken().getDefiningOp())->second;
      for (auto [mine, other] : llvm::zip_equal(now[wait.getStream()], theirs))
        mine = std::max(mine, other);
    } else if (!runsAt(op, position)) {
      ended[op] = now[cast<RowOpInterface>(op).getStreamIndex()];
    } else if (failed(checkRow(numbers.lookup(op)))) {
      return failure();
    }
  }
  for (int64_t stream = 1; stream < numStreams; ++stream)
    if (now[0][stream] < int64_t(onStream[stream].size()))
      return rows[onStream[stream].back()].op->emitOpError()
             << "may still run when the step ends; stream 0 must wait for it";
  return checkLives();
}

LogicalResult ProgramVerifier::checkLives() {
  // Arguments are always in use where they are held, a buffer is where rows touch it.
  SmallVector<std::pair<Operation *, Life *>> order;
  for (auto [op, range] : storages) {
    if (range.begin == range.end)
      continue;
    bool isHeld = isa<ArgOp>(op) && runsAt(op, position);
    if (isHeld)
      lives.try_emplace(op);
    if (auto at = lives.find(op); at != lives.end())
      at->second.range = range;
  }
  for (auto &[op, life] : lives)
    if (life.range.storage)
      order.push_back({op, &life});
  auto placeOf = [](const Life &life) { return std::pair(life.range.memory, life.range.begin); };
  llvm::stable_sort(order, [&](const auto &a, const auto &b) { return placeOf(*a.second) < placeOf(*b.second); });
  auto endsBefore = [](const Life &a, const Life &b) {
    return llvm::all_of_zip(a.last, b.known, [](int64_t last, int64_t known) { return last <= known; });
  };
  auto clash = [&](unsigned i, unsigned j) {
    const ByteRange &a = order[i].second->range, &b = order[j].second->range;
    auto diag = order[j].first->emitOpError()
                << "shares bytes [" << b.begin << ", " << std::min(a.end, b.end)
                << ") with a buffer that is in use at the same time";
    diag.attachNote(order[i].first->getLoc()) << "the other buffer is here";
    return diag;
  };

  // From the lowest byte to the highest. Buffers that have the byte at hand have it one after another, in the order of
  // their first rows; whose turn ends before another's ends before all behind that, so neighbours are enough.
  using Turn = std::pair<unsigned, unsigned>; // first row, place in `order`
  std::set<Turn> turns;
  std::priority_queue<std::pair<int64_t, Turn>, std::vector<std::pair<int64_t, Turn>>, std::greater<>> ends; // of `turns`
  std::optional<unsigned> farthest, argument; // of all and of arguments, what reaches farthest
  auto reachesInto = [&](std::optional<unsigned> i, const Life &life) {
    return i && order[*i].second->range.memory == life.range.memory &&
           order[*i].second->range.end > life.range.begin;
  };
  for (unsigned i = 0; i < order.size(); ++i) {
    const Life &life = *order[i].second;
    if (i && order[i - 1].second->range.memory != life.range.memory) {
      turns.clear();
      ends = {};
    }
    bool isArgument = isa<ArgOp>(order[i].first);
    if (std::optional<unsigned> other = isArgument ? farthest : argument; reachesInto(other, life))
      return clash(*other, i);
    for (std::optional<unsigned> *last : {&farthest, isArgument ? &argument : nullptr})
      if (last && (!reachesInto(*last, life) || order[**last].second->range.end < life.range.end))
        *last = i;
    if (isArgument)
      continue;
    for (; !ends.empty() && !reachesInto(ends.top().second.second, life); ends.pop())
      turns.erase(ends.top().second);
    auto [turn, isNew] = turns.insert({life.first, i});
    if (turn != turns.begin() && !endsBefore(*order[std::prev(turn)->second].second, life))
      return clash(std::prev(turn)->second, i);
    if (auto next = std::next(turn); next != turns.end() && !endsBefore(life, *order[next->second].second))
      return clash(next->second, i);
    ends.push({life.range.end, *turn});
  }
  return success();
}

/// What each class runs, and the rows of others that it waits for.
void ProgramVerifier::findSteps() {
  std::vector<llvm::SmallSetVector<Operation *, 4>> foreign(classes.size());
  for (auto wait : program.getBody().getOps<WaitOp>()) {
    Operation *row = wait.getToken().getDefiningOp();
    ArrayRef<unsigned> running = classes.of(row);
    for (unsigned number : classes.of(wait))
      if (!llvm::binary_search(running, number))
        foreign[number].insert(row);
  }
  for (auto [number, others] : llvm::enumerate(foreign)) {
    auto &all = steps.emplace_back(classes[number].steps);
    if (others.empty())
      continue;
    all.append(others.begin(), others.end());
    llvm::sort(all, [](Operation *a, Operation *b) { return a != b && a->isBeforeInBlock(b); });
  }
}

LogicalResult ProgramVerifier::run() {
  if (failed(collect()) || failed(checkRows()))
    return failure();
  findSteps();
  for (unsigned number = 0; number < classes.size(); ++number)
    if (failed(checkAt(number)))
      return failure();
  return success(succeeded(checkRanges()) && succeeded(checkState()));
}

namespace {
struct Verify : impl::VerifyPassBase<Verify> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(mlir::verify(getOperation())))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(ProgramVerifier(program, symbols).run()) || failed(checkContents(program, symbols)) ||
          failed(checkRendezvous(program)))
        return signalPassFailure();
    FailureOr<Programs> programs = findPrograms(getOperation());
    if (failed(programs) || (programs->evaluation && failed(verifyEvaluation(*programs))))
      signalPassFailure();
  }
};
} // namespace

} // namespace shoal::exec
