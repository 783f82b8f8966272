// The rules a rank program must keep, section by section. Sums and products of numbers
// from the blob are formed only after bounds that exclude overflow.
#include "core/program_check.h"
#include "core/error.h"
#include "core/piece.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <climits>
#include <map>
#include <vector>

namespace shoal::rt {
namespace {

constexpr uint64_t kMaxMeshPositions = 1 << 20;

} // namespace

void ProgramChecker::check() const {
  checkHeader();
  checkMesh();
  checkViews();
  checkArgs();
  checkArgsApart();
  checkResults();
  checkTensors();
  checkInstrs();
  checkOrder();
  checkHolders();
}

void ProgramChecker::checkStr(const char *what, uint64_t number, Str s) const {
  if (s.offset > p.strings_.size() || s.size > p.strings_.size() - s.offset)
    badInput("program: the name of ", what, " ", number, " must lie inside the ",
             p.strings_.size(), " bytes of strings, got: ", s.size, " bytes at ", s.offset);
}

void ProgramChecker::checkHeader() const {
  const Header &h = p.header();
  checkStr("program", 0, h.name);
  checkStr("plan", 0, h.plan);
  checkStr("stages", 0, h.stages);
  if (h.mode != Mode::Train && h.mode != Mode::Infer && h.mode != Mode::Eval)
    badInput("program: mode must be 0, 1 or 2, got: ", uint32_t(h.mode));
  if (h.arenaBytes > kMaxArenaBytes)
    badInput("program: the arena must be at most ", kMaxArenaBytes, " bytes, got: ", h.arenaBytes);
  if (h.numStreams < 1 || h.numStreams > 64)
    badInput("program: streams must number 1 to 64, got: ", h.numStreams);
  if (h.numEvents > p.instrs_.size())
    badInput("program: events must be at most the ", p.instrs_.size(), " rows, got: ",
             h.numEvents);
}

void ProgramChecker::checkAxisList(const char *what, uint64_t number, uint32_t first,
                                   uint32_t count) const {
  if (first > p.indices_.size() || count > p.indices_.size() - first)
    badInput("program: the axes of ", what, " ", number, " must lie inside ", p.indices_.size(),
             " indices, got: ", count, " at ", first);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t axis = p.indices_[first + i];
    if (axis >= p.axes_.size())
      badInput("program: ", what, " ", number, " names mesh axis ", axis, " of ", p.axes_.size());
    for (uint32_t j = 0; j < i; ++j)
      if (p.indices_[first + j] == axis)
        badInput("program: ", what, " ", number, " names mesh axis ", axis, " twice");
  }
}

void ProgramChecker::checkMesh() const {
  uint64_t positions = 1;
  for (size_t i = 0; i < p.axes_.size(); ++i) {
    checkStr("mesh axis", i, p.axes_[i].name);
    if (p.axes_[i].size < 1)
      badInput("program: axis size must be at least 1, got: ", p.axes_[i].size);
    if (!multiplyFits(positions, p.axes_[i].size, kMaxMeshPositions, positions))
      badInput("program: the mesh must have at most ", kMaxMeshPositions, " positions");
  }
  if (p.deviceIds_.size() != positions)
    badInput("program: device ids must number the ", positions, " mesh positions, got: ",
             p.deviceIds_.size());
  std::vector<bool> seen(positions);
  for (uint32_t id : p.deviceIds_) {
    if (id >= positions || seen[id])
      badInput("program: device ids must be a permutation of 0 to ", positions - 1,
               ", got: ", id, id < positions ? " twice" : "");
    seen[id] = true;
  }
  for (size_t i = 0; i < p.groups_.size(); ++i)
    checkAxisList("group", i, p.groups_[i].firstIndex, p.groups_[i].numIndices);
}

void ProgramChecker::checkViews() const {
  uint64_t arena = p.header().arenaBytes;
  for (size_t i = 0; i < p.views_.size(); ++i) {
    const View &view = p.views_[i];
    uint64_t size = elementBytes(view.dtype), bytes = 0;
    if (size == 0)
      badInput("program: view ", i, " has unknown dtype ", uint32_t(view.dtype));
    if (view.offset > arena || !multiplyFits(view.elements, size, arena - view.offset, bytes))
      badInput("program: view ", i, " must lie inside the arena of ", arena, " bytes, got: ",
               view.elements, " ", dtypeName(view.dtype), " at ", view.offset);
    if (view.offset % size != 0)
      badInput("program: view ", i, " of ", dtypeName(view.dtype),
               " must start at a multiple of ", size, ", got: ", view.offset);
    if (view.storageClass > StorageClass::Workspace)
      badInput("program: view ", i, " has unknown class ", uint32_t(view.storageClass));
    if (view.storage >= p.views_.size() || p.views_[view.storage].storage != view.storage)
      badInput("program: view ", i, " must lie in a view that lies in no other, got: view ",
               view.storage, " of ", p.views_.size());
  }
  for (size_t i = 0; i < p.views_.size(); ++i) {
    const View &view = p.views_[i], &whole = p.views_[view.storage];
    uint64_t end = view.offset + view.elements * elementBytes(view.dtype);
    uint64_t wholeEnd = whole.offset + whole.elements * elementBytes(whole.dtype);
    if (view.offset < whole.offset || end > wholeEnd)
      badInput("program: view ", i, " must lie inside bytes ", whole.offset, " to ", wholeEnd,
               " of view ", view.storage, ", got: ", view.offset, " to ", end);
    if (view.storageClass != whole.storageClass)
      badInput("program: view ", i, " must have the class of view ", view.storage, ", ",
               uint32_t(whole.storageClass), ", got: ", uint32_t(view.storageClass));
  }
}

uint64_t ProgramChecker::checkShape(const std::string &who, uint32_t first, uint32_t count) const {
  if (first > p.dims_.size() || count > p.dims_.size() - first)
    badInput("program: the dimensions of ", who, " must lie inside ", p.dims_.size(), ", got: ",
             count, " at ", first);
  uint64_t local = 1, global = 1;
  std::vector<bool> used(p.axes_.size(), false);
  for (uint32_t i = 0; i < count; ++i) {
    const Dim &dim = p.dims_[first + i];
    checkAxisList("dimension", first + i, dim.firstAxis, dim.numAxes);
    for (uint32_t axis : p.axesOf(dim)) {
      if (used[axis])
        badInput("program: mesh axis ", axis, " shards two dimensions of ", who);
      used[axis] = true;
    }
    uint64_t shards = p.extent(p.axesOf(dim));
    if (!multiplyFits(global, dim.global, kMaxArenaBytes, global))
      badInput("program: ", who, " must have at most ", kMaxArenaBytes, " elements");
    if (dim.local != dim.global / shards + (dim.global % shards != 0))
      badInput("program: dimension ", i, " of ", who, " must be ceil(", dim.global, " / ", shards,
               ") locally, got: ", dim.local);
    if (!multiplyFits(local, dim.local, kMaxArenaBytes, local))
      badInput("program: ", who, " must have at most ", kMaxArenaBytes, " local elements");
  }
  return local;
}

void ProgramChecker::checkDims(const std::string &who, uint32_t first, uint32_t count,
                               uint32_t view, int32_t batchDim) const {
  if (view >= p.views_.size())
    badInput("program: ", who, " names view ", view, " of ", p.views_.size());
  uint64_t local = checkShape(who, first, count);
  if (batchDim < -1 || batchDim >= int64_t(count))
    badInput("program: the batch dimension of ", who, " must be -1 or one of its ", count,
             " dimensions, got: ", batchDim);
  if (p.views_[view].elements != local)
    badInput("program: ", who, " has ", local, " local elements, its view ", view, " has ",
             p.views_[view].elements);
}

// What the numbers in the files of an input may be.
void ProgramChecker::checkIndices(const std::string &who, const Arg &arg) const {
  DType type = p.views_[arg.view].dtype;
  bool mayIndex = arg.kind == ArgKind::Input && (type == DType::I32 || type == DType::I64);
  if (arg.indices < 0 || (arg.indices > 0 && !mayIndex))
    badInput("program: the indices of ", who, " must number 0, or more in an input of i32 or i64, ",
             "got: ", arg.indices);
}

void ProgramChecker::checkArgs() const {
  std::set<std::string_view> names;
  uint32_t steps = 0, validRows = 0, seeds = 0;
  bool batched = false;
  for (size_t i = 0; i < p.args_.size(); ++i) {
    const Arg &arg = p.args_[i];
    checkStr("argument", i, arg.name);
    std::string who = cat("argument ", i, " '", p.str(arg.name), "'");
    if (arg.kind > ArgKind::Seed)
      badInput("program: ", who, " has unknown kind ", uint32_t(arg.kind));
    if (arg.kind != ArgKind::Input && arg.batchDim != -1)
      badInput("program: ", who, " is no input and must have batch dimension -1, got: ",
               arg.batchDim);
    checkDims(who, arg.firstDim, arg.numDims, arg.view, arg.batchDim);
    checkIndices(who, arg);
    checkPositions("hold", who, arg.heldAt);
    if (!names.insert(p.str(arg.name)).second)
      badInput("program: the name of ", who, " is taken by another argument");
    const View &view = p.views_[arg.view];
    DType type = view.dtype;
    if (arg.kind == ArgKind::Step || arg.kind == ArgKind::ValidRows || arg.kind == ArgKind::Seed) {
      if (type != DType::I64 || arg.numDims != 0)
        badInput("program: ", who, " must be a scalar i64, got: ", dtypeName(type),
                 shapeText(p.dims(arg)));
      auto [count, what] = arg.kind == ArgKind::Step   ? std::pair(&steps, "step")
                           : arg.kind == ArgKind::Seed ? std::pair(&seeds, "seed")
                                                       : std::pair(&validRows, "count of valid rows");
      if (++*count > 1)
        badInput("program: only one argument may be the ", what, ", got: ", who);
    }
    // Masters of parameters in fewer bits are the optimizer's.
    bool isMaster = arg.kind == ArgKind::Param && view.storageClass == StorageClass::Optimizer;
    if (view.storage != arg.view || !(isMaster || view.storageClass == storageClassOf(arg.kind)))
      badInput("program: ", who, " must be a storage of its own and of class ",
               uint32_t(storageClassOf(arg.kind)), ", got: a part of view ", view.storage,
               " of class ", uint32_t(view.storageClass));
    if (arg.batchDim >= 0) {
      std::span<const Dim> dims = p.dims(arg);
      uint64_t rows = dims[arg.batchDim].global, all = p.header().batchRows;
      batched = true;
      if (rows == 0 || all == 0 || arg.batchDim > 1 || (arg.batchDim == 0 && rows != all))
        badInput("program: the batch dimension of ", who, " must be the batch of ", all,
                 " rows and not 0, or the second behind the micro-batches, got: ", rows, " in dimension ",
                 arg.batchDim);
      if (arg.batchDim == 1 && (dims[0].global == 0 || dims[0].numAxes != 0 || rows != (all - 1) / dims[0].global + 1))
        badInput("program: ", who, " must hold a batch of ", all, " rows in whole micro-batches, got: ",
                 dims[0].global, " of ", rows, " rows");
    }
  }
  if (!batched && p.header().batchRows != 0)
    badInput("program: batch rows must be 0 without a batched input, got: ",
             p.header().batchRows);
}

// At each position; also before row 0, when inputs are filled that others may write over once they are read.
void ProgramChecker::checkArgsApart() const {
  struct Range {
    uint64_t begin, end;
    const Arg *arg;
  };
  std::vector<Range> ranges;
  for (const Arg &arg : p.args_) {
    const View &view = p.views_[arg.view];
    if (view.elements != 0)
      ranges.push_back({view.offset, view.offset + view.elements * elementBytes(view.dtype), &arg});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  std::map<std::pair<Positions, Positions>, bool> known;
  auto meet = [&](Positions a, Positions b) {
    if (a == b || a == kNone || b == kNone)
      return true; // somebody holds each
    auto [at, isNew] = known.try_emplace({std::min(a, b), std::max(a, b)}, false);
    for (uint32_t position = 0; isNew && position < p.numPositions() && !at->second; ++position)
      at->second = p.isIn(a, position) && p.isIn(b, position);
    return at->second;
  };
  std::vector<Range> open; // those before that reach to where the next one begins: no two of a position
  for (const Range &range : ranges) {
    std::erase_if(open, [&](const Range &before) { return before.end <= range.begin; });
    for (const Range &before : open)
      if (before.arg->view == range.arg->view || meet(before.arg->heldAt, range.arg->heldAt))
        badInput("program: arguments must not share storage, but '", p.str(before.arg->name), "' and '",
                 p.str(range.arg->name), "' overlap at byte ", range.begin);
    open.push_back(range);
  }
}

void ProgramChecker::checkResults() const {
  std::set<std::pair<ResultKind, std::string_view>> names;
  bool hasLoss = false;
  for (size_t i = 0; i < p.results_.size(); ++i) {
    const Result &result = p.results_[i];
    checkStr("result", i, result.name);
    std::string who = cat("result ", i, " '", p.str(result.name), "'");
    if (result.kind > ResultKind::Grad)
      badInput("program: ", who, " has unknown kind ", uint32_t(result.kind));
    checkDims(who, result.firstDim, result.numDims, result.view, result.batchDim);
    bool scalar = result.kind == ResultKind::Loss || result.kind == ResultKind::Metric;
    if (scalar && result.numDims != 0)
      badInput("program: ", who, " must be a scalar, got: ", shapeText(p.dims(result)));
    if (result.kind == ResultKind::Loss && std::exchange(hasLoss, true))
      badInput("program: only one result may be the loss, got: ", who);
    if (result.batchDim >= 0 && (result.kind != ResultKind::Output ||
                                 p.dims(result)[result.batchDim].global != p.header().batchRows))
      badInput("program: only an output may be batched, with the batch's ", p.header().batchRows,
               " rows, got: ", who);
    if (!names.insert({result.kind, p.str(result.name)}).second)
      badInput("program: the name of ", who, " is taken by another result of its kind");
    if (result.probe >= p.instrs_.size())
      badInput("program: ", who, " is read at row ", result.probe, " of ", p.instrs_.size());
    const Instr &probe = p.instrs_[result.probe];
    if (probe.op != Opcode::Probe || probe.a != i)
      badInput("program: ", who, " must be read at a probe of its own, got: row ", result.probe,
               ", ", opcodeName(probe.op), " of ", probe.a);
  }
}

bool ProgramChecker::overlap(uint32_t viewA, uint32_t viewB) const {
  const View &a = p.views_[viewA], &b = p.views_[viewB];
  uint64_t endA = a.offset + a.elements * elementBytes(a.dtype);
  uint64_t endB = b.offset + b.elements * elementBytes(b.dtype);
  return a.offset < endB && b.offset < endA;
}

bool ProgramChecker::sameRange(uint32_t viewA, uint32_t viewB) const {
  const View &a = p.views_[viewA], &b = p.views_[viewB];
  return a.offset == b.offset && a.elements == b.elements && a.dtype == b.dtype;
}

void ProgramChecker::checkInstrs() const {
  const Header &h = p.header();
  for (size_t row = 0; row < p.instrs_.size(); ++row) {
    const Instr &instr = p.instrs_[row];
    checkStr("row", row, instr.name);
    checkStr("row", row, instr.reason);
    checkStr("row", row, instr.scope);
    std::string who = cat("row ", row, " (", rowKind(instr), " '", p.str(instr.name), "')");
    auto inside = [&](const char *what, uint32_t first, uint32_t count, size_t size) {
      if (first > size || count > size - first)
        badInput("program: the ", what, " of ", who, " must lie inside ", size, ", got: ", count,
                 " at ", first);
    };
    inside("operands", instr.firstOperand, instr.numOperands, p.operands_.size());
    inside("peers", instr.firstPeer, instr.numPeers, p.peers_.size());
    inside("parameters", instr.firstParam, instr.numParams, p.params_.size());
    auto operands = p.operands(instr);
    for (uint32_t view : operands)
      if (view >= p.views_.size())
        badInput("program: ", who, " names view ", view, " of ", p.views_.size());
    if (instr.stream >= h.numStreams)
      badInput("program: ", who, " runs on stream ", instr.stream, " of ", h.numStreams);
    if (instr.event != kNone && instr.event >= h.numEvents)
      badInput("program: ", who, " signals event ", instr.event, " of ", h.numEvents);
    checkPositions("run", who, instr.onlyAt);
    checkWholeGroups(who, instr);
    auto expect = [&](const char *what, uint64_t wanted, uint64_t got) {
      if (wanted != got)
        badInput("program: ", who, " takes ", wanted, " ", what, ", got: ", got);
    };
    auto onComputeStream = [&] {
      if (instr.stream != 0)
        badInput("program: ", who, " must run on the compute stream 0, got: ", instr.stream);
    };

    switch (instr.op) {
    case Opcode::Launch:
      onComputeStream();
      if (instr.a >= h.numKernels)
        badInput("program: ", who, " launches kernel ", instr.a, " of ", h.numKernels);
      break;
    case Opcode::Library:
      onComputeStream();
      checkLibrary(who, instr);
      break;
    case Opcode::Copy: {
      expect("operands", 2, operands.size());
      const View &from = p.views_[operands[0]], &to = p.views_[operands[1]];
      uint64_t fromBytes = from.elements * elementBytes(from.dtype);
      uint64_t toBytes = to.elements * elementBytes(to.dtype);
      if (fromBytes != toBytes)
        badInput("program: ", who, " must copy equal bytes, got: ", fromBytes, " and ", toBytes);
      if (overlap(operands[0], operands[1]))
        badInput("program: the operands of ", who, " must be apart, got: views ", operands[0],
                 " and ", operands[1]);
      break;
    }
    case Opcode::AxisIndex:
      onComputeStream();
      expect("operands", 1, operands.size());
      expect("parameters", 1, instr.numParams);
      if (instr.a >= p.groups_.size())
        badInput("program: ", who, " names group ", instr.a, " of ", p.groups_.size());
      if (p.views_[operands[0]].dtype != DType::I64 || p.views_[operands[0]].elements != 1)
        badInput("program: ", who, " writes one i64, got a view of ",
                 p.views_[operands[0]].elements, " ", dtypeName(p.views_[operands[0]].dtype));
      break;
    case Opcode::Wait:
      expect("parameters", 1, instr.numParams);
      if (p.params(instr)[0] < 0 || uint64_t(p.params(instr)[0]) >= h.numEvents)
        badInput("program: ", who, " waits for event ", p.params(instr)[0], " of ", h.numEvents);
      break;
    case Opcode::Probe:
      onComputeStream();
      if (instr.a >= p.results_.size() || p.results_[instr.a].probe != row)
        badInput("program: ", who, " must be the probe of its result, got: result ", instr.a,
                 " of ", p.results_.size());
      break;
    case Opcode::Permute:
    case Opcode::PointToPoint:
      checkPeers(who, instr);
      break;
    default:
      if (!isCommunication(instr.op))
        badInput("program: row ", row, " has unknown operation ", uint32_t(instr.op));
      checkCollective(who, instr);
    }
  }
}

void ProgramChecker::checkPositions(const char *verb, const std::string &who, Positions set) const {
  if (set == kNone || knownSets_.count(set))
    return;
  uint32_t positions = p.numPositions();
  if (set > p.indices_.size() || positions > p.indices_.size() - set)
    badInput("program: the positions that ", verb, " ", who, " must lie inside ", p.indices_.size(),
             " indices, got: ", positions, " at ", set);
  for (uint32_t position = 0; position < positions; ++position)
    if (uint32_t flag = p.indices_[set + position]; flag > 1)
      badInput("program: position ", position, " must ", verb, " ", who, " or not, 1 or 0, got: ", flag);
  knownSets_.insert(set);
}

void ProgramChecker::checkWholeGroups(const std::string &who, const Instr &instr) const {
  if (instr.onlyAt == kNone || !isCommunication(instr.op) || instr.op == Opcode::PointToPoint ||
      instr.a >= p.groups_.size())
    return; // a group that does not exist is refused where it is read
  if (!wholeGroups_.insert({instr.onlyAt, instr.a}).second)
    return;
  // Positions of one group differ only along its axes: all have the state of the first seen.
  std::span<const uint32_t> axes = p.axesOf(p.groups_[instr.a]);
  std::vector<uint32_t> others;
  for (uint32_t axis = 0; axis < p.axes_.size(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      others.push_back(axis);
  enum class State : uint8_t { Unknown, Rests, Runs };
  std::vector<State> groups(p.extent(others), State::Unknown);
  for (uint32_t position = 0; position < p.numPositions(); ++position) {
    State &group = groups[p.linear(position, others)];
    State here = p.runsAt(instr, position) ? State::Runs : State::Rests;
    if (group == State::Unknown)
      group = here;
    if (group != here)
      badInput("program: ", who, " must be run by whole groups, got: mesh position ", position,
               here == State::Runs ? " does" : " does not", " run it");
  }
}

// What is held is held as a whole, and rows find it where they run.
void ProgramChecker::checkHolders() const {
  std::set<std::pair<Positions, std::vector<uint32_t>>> known;
  auto checkWhole = [&](const char *what, Str name, Positions holders, std::vector<uint32_t> axes) {
    if (holders == kNone || known.count({holders, axes}))
      return;
    size_t parts = p.extent(axes), held = firstHolders(p, axes, holders).size();
    if (held != parts)
      badInput("program: each of the ", parts, " parts of ", what, " '", p.str(name),
               "' must be held at a mesh position, got: ", held);
    known.insert({holders, std::move(axes)});
  };
  std::vector<uint32_t> argOf(p.views_.size(), kNone); // of the storages that belong to some positions
  for (uint32_t i = 0; i < p.args_.size(); ++i) {
    const Arg &arg = p.args_[i];
    checkWhole("argument", arg.name, arg.heldAt, {});
    if (arg.heldAt != kNone)
      argOf[arg.view] = i;
  }
  for (const Tensor &tensor : p.tensors_)
    checkWhole("tensor", tensor.name, p.holders(tensor), shardingAxes(p, tensor));
  for (const Result &result : p.results_)
    checkWhole("result", result.name, p.holders(result), shardingAxes(p, p.dims(result)));
  checkTouches(argOf);
}

void ProgramChecker::checkTouches(const std::vector<uint32_t> &argOf) const {
  // Who runs a row, whose message it is (kNone: nobody's), and who holds the argument.
  std::set<std::tuple<Positions, uint32_t, Positions>> known;
  for (uint32_t row = 0; row < p.instrs_.size(); ++row) {
    const Instr &instr = p.instrs_[row];
    auto touch = [&](uint32_t view, const Peer *peer) {
      uint32_t number = argOf[p.views_[view].storage];
      if (number == kNone)
        return;
      const Arg &arg = p.args_[number];
      if (!known.insert({instr.onlyAt, peer ? peer->firstPosition : kNone, arg.heldAt}).second)
        return;
      for (uint32_t position = 0; position < p.numPositions(); ++position)
        if (p.runsAt(instr, position) && (!peer || p.peerOf(*peer, position) != kNone) && !p.holds(arg, position))
          badInput("program: row ", row, " (", rowKind(instr), " '", p.str(instr.name),
                   "') must run only where argument '", p.str(arg.name), "' is held, got: mesh position ", position);
    };
    bool isMessages = instr.op == Opcode::PointToPoint || instr.op == Opcode::Permute;
    if (!isMessages)
      for (uint32_t view : p.operands(instr))
        touch(view, nullptr);
    for (const Peer &peer : p.peers(instr)) // what a permute does not receive are zeros
      touch(peer.view, instr.op == Opcode::Permute && !peer.isSend ? nullptr : &peer);
    if (instr.op == Opcode::Probe)
      touch(p.results_[instr.a].view, nullptr);
  }
}

// Each event is signalled by one row, and waited for only after it in program order, so
// that rows executed in that order never wait for what has not been started.
void ProgramChecker::checkOrder() const {
  std::vector<uint32_t> signalledBy(p.header().numEvents, kNone);
  for (uint32_t row = 0; row < p.instrs_.size(); ++row) {
    const Instr &instr = p.instrs_[row];
    if (instr.op == Opcode::Wait) {
      uint32_t event = uint32_t(p.params(instr)[0]);
      if (signalledBy[event] == kNone)
        badInput("program: row ", row, " waits for event ", event,
                 ", which no earlier row signals");
    }
    if (instr.event == kNone)
      continue;
    if (signalledBy[instr.event] != kNone)
      badInput("program: event ", instr.event, " must be signalled by one row, got: rows ",
               signalledBy[instr.event], " and ", row);
    signalledBy[instr.event] = row;
  }
}

void ProgramChecker::checkCollective(const std::string &who, const Instr &instr) const {
  if (instr.a >= p.groups_.size())
    badInput("program: ", who, " names group ", instr.a, " of ", p.groups_.size());
  auto operands = p.operands(instr);
  if (instr.op == Opcode::Barrier) {
    if (!operands.empty())
      badInput("program: ", who, " takes 0 operands, got: ", operands.size());
    return;
  }
  if (operands.size() != 2)
    badInput("program: ", who, " takes 2 operands, got: ", operands.size());
  const View &in = p.views_[operands[0]], &out = p.views_[operands[1]];
  uint64_t ranks = p.extent(p.axesOf(p.groups_[instr.a]));
  if (in.dtype != out.dtype)
    badInput("program: ", who, " must keep the element type, got: ", dtypeName(in.dtype), " and ",
             dtypeName(out.dtype));
  if (std::max(in.elements, out.elements) > INT_MAX)
    badInput("program: ", who, " must take at most ", INT_MAX, " elements, got: ",
             std::max(in.elements, out.elements));

  uint64_t inChunks = 1, outChunks = 1;
  bool rooted = false, inPlace = false;
  switch (instr.op) {
  case Opcode::AllReduce:
    inPlace = true;
    break;
  case Opcode::AllGather:
    outChunks = ranks;
    break;
  case Opcode::ReduceScatter:
    inChunks = ranks;
    break;
  case Opcode::AllToAll:
    inChunks = outChunks = ranks;
    break;
  case Opcode::Broadcast:
    rooted = inPlace = true;
    break;
  case Opcode::Scatter:
    rooted = true;
    inChunks = ranks;
    break;
  case Opcode::Gather:
    rooted = true;
    outChunks = ranks;
    break;
  default:
    break;
  }
  if (in.elements % inChunks != 0 || out.elements % outChunks != 0 ||
      in.elements / inChunks != out.elements / outChunks)
    badInput("program: ", who, " over ", ranks, " ranks needs ", inChunks, " and ", outChunks,
             " equal chunks, got: ", in.elements, " and ", out.elements, " elements");
  if (overlap(operands[0], operands[1]) && !(inPlace && sameRange(operands[0], operands[1])))
    badInput("program: the operands of ", who,
             inPlace ? " must be equal or apart" : " must be apart", ", got: views ", operands[0],
             " and ", operands[1]);
  bool reduces = instr.op == Opcode::AllReduce || instr.op == Opcode::ReduceScatter;
  if (reduces && instr.b > uint32_t(Reduction::Min))
    badInput("program: ", who, " has unknown reduction ", instr.b);
  if (reduces && in.dtype == DType::I1 && Reduction(instr.b) == Reduction::Sum)
    badInput("program: ", who, " must not sum i1 values; use max for or, min for and");
  if (rooted && (instr.numParams != 1 || p.params(instr)[0] < 0 ||
                 uint64_t(p.params(instr)[0]) >= ranks))
    badInput("program: ", who, " needs a root among its ", ranks, " ranks");
}

void ProgramChecker::checkPeers(const std::string &who, const Instr &instr) const {
  bool permute = instr.op == Opcode::Permute;
  if (instr.a != kNone && instr.a >= p.groups_.size())
    badInput("program: ", who, " names group ", instr.a, " of ", p.groups_.size());
  auto peers = p.peers(instr);
  auto operands = p.operands(instr);
  if (permute && (peers.size() != 2 || !peers[0].isSend || peers[1].isSend ||
                  operands.size() != 2 || operands[0] != peers[0].view ||
                  operands[1] != peers[1].view))
    badInput("program: ", who, " takes a send of operand 0 and a receive of operand 1");
  uint32_t positions = p.numPositions();
  for (const Peer &peer : peers) {
    if (peer.view >= p.views_.size())
      badInput("program: ", who, " names view ", peer.view, " of ", p.views_.size());
    if (p.views_[peer.view].elements > INT_MAX)
      badInput("program: ", who, " must take at most ", INT_MAX, " elements, got: ",
               p.views_[peer.view].elements);
    if (peer.firstPosition > p.indices_.size() ||
        positions > p.indices_.size() - peer.firstPosition)
      badInput("program: the positions of ", who, " must lie inside ", p.indices_.size(),
               " indices, got: ", positions, " at ", peer.firstPosition);
    for (uint32_t position = 0; position < positions && !knownPeers_.count(peer.firstPosition); ++position) {
      uint32_t other = p.peerOf(peer, position);
      if (other != kNone && other >= positions)
        badInput("program: ", who, " names mesh position ", other, " of ", positions);
    }
    knownPeers_.insert(peer.firstPosition);
  }
  // Messages of different positions may lie at one offset: each is in an arena of its own.
  auto meet = [&](const Peer &one, const Peer &other) {
    for (uint32_t position = 0; position < positions; ++position)
      if (p.peerOf(one, position) != kNone && p.peerOf(other, position) != kNone)
        return true;
    return false;
  };
  for (const Peer &receive : peers)
    for (const Peer &other : peers)
      if (&receive != &other && !receive.isSend && overlap(receive.view, other.view) && meet(receive, other))
        badInput("program: a receive of ", who, " must not share storage with another message");
  if (!permute)
    return;
  // The two lists say the same thing twice; a receive without its send would never end.
  if (p.views_[operands[0]].elements != p.views_[operands[1]].elements ||
      p.views_[operands[0]].dtype != p.views_[operands[1]].dtype)
    badInput("program: ", who, " must keep type and size");
  if (!paired_.insert({peers[0].firstPosition, peers[1].firstPosition, instr.onlyAt}).second)
    return;
  for (uint32_t position = 0; position < positions; ++position) {
    uint32_t to = p.peerOf(peers[0], position), from = p.peerOf(peers[1], position);
    if ((to != kNone && p.peerOf(peers[1], to) != position) ||
        (from != kNone && p.peerOf(peers[0], from) != position))
      badInput("program: ", who, " must pair each send with its receive, got none for mesh ",
               "position ", position);
    if (to != kNone && p.runsAt(instr, position) != p.runsAt(instr, to))
      badInput("program: ", who, " must be run by both ends of a message, got one of mesh positions ",
               position, " and ", to);
  }
}

} // namespace shoal::rt
