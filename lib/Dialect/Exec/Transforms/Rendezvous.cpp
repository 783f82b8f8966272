// Runs the communication of a rank program on all mesh positions at once, without data: rows start
// in order on each stream, messages meet in order per stream and pair of positions, collectives end
// when the whole group has come. What then still waits does so in a circle.
#include "Rendezvous.h"

#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/IR/PositionClasses.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Path.h"

#include <map>
#include <tuple>

using namespace mlir;

namespace shoal::exec {

namespace {

// Members of a cycle that a diagnostic names; a ring may have thousands.
constexpr size_t kMaxNamed = 8;

/// One end of a message.
struct End {
  Operation *op;
  BufferType type;
};

/// The messages of one stream from one position to another, in order: the k-th send meets the k-th
/// receive.
struct Channel {
  SmallVector<End, 2> sends, recvs;
  size_t sent = 0, received = 0; // how many have started
};

/// A row or wait of a stream of some positions: what they run, and rows of others that they wait for, which they go
/// past.
struct Step {
  Operation *op;
  unsigned row;             // its own number, or the one it waits for
  unsigned place;           // in the program
  bool runs = true;
  dist::AxesAttr axes = {}; // of a collective
};

/// A message that the running row has started.
struct Transfer {
  Channel *channel;
  bool isSend;
  size_t number; // in the channel
  int64_t other; // position
  bool isMet() const { return number < (isSend ? channel->received : channel->sent); }
};

/// One stream at one position.
struct Lane {
  size_t next = 0; // step
  bool running = false;
  unsigned open = 0; // transfers that have not met
  SmallVector<Transfer, 2> transfers;
};

struct Place {
  int64_t position;
  int64_t stream;
  bool operator==(const Place &other) const = default;
};

class Rendezvous {
public:
  Rendezvous(ProgramOp program, dist::MeshAttr mesh)
      : program(program), mesh(mesh), positions(mesh.getNumDevices()), classes(program) {}
  LogicalResult run();

private:
  using OnTransfer = llvm::function_ref<void(bool isSend, int64_t other, BufferType type)>;
  void forEachTransfer(unsigned row, int64_t position, OnTransfer onTransfer);
  void collect();
  LogicalResult matchEnds();
  void advance(Place place);
  bool startMessages(Place place, const Step &step);
  bool joinGroup(Place place, const Step &step);
  void finish(Place place);
  Place waitsFor(Place place);
  LogicalResult reportCycle(Place start);

  Lane &laneAt(Place place) { return lanes[place.position * numStreams + place.stream]; }
  ArrayRef<Step> stepsAt(Place place) const { return steps[classOf[place.position]][place.stream]; }
  std::string nameAt(Place place);

  ProgramOp program;
  dist::MeshAttr mesh;
  int64_t positions;
  PositionClasses classes;
  SmallVector<unsigned> classOf; // by position
  int64_t numStreams = 1;
  std::vector<SmallVector<SmallVector<Step, 0>>> steps; // by class and stream
  SmallVector<Operation *> rows;
  SmallVector<SmallVector<Message, 0>> messages; // per row
  std::map<std::tuple<int64_t, int64_t, int64_t>, Channel> channels; // stream, from, to
  SmallVector<Lane> lanes;
  SmallVector<std::vector<bool>> ended;                    // per row and position
  std::map<std::pair<unsigned, int64_t>, int64_t> arrived; // row, first position of the group
  SmallVector<Place> work;
};

} // namespace

/// "'send' (ring.mlir:7:5)": what a row is, and the op of the program that it comes from. Diagnostics
/// name rows by this and not by the op of this dialect, which nobody wrote.
static std::string nameOf(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("name");
  std::string text = ("'" + (name ? name.getValue() : op->getName().stripDialect()) + "'").str();
  if (auto loc = op->getLoc()->findInstanceOf<FileLineColLoc>())
    text += " (" + llvm::sys::path::filename(loc.getFilename().getValue()).str() + ":" +
            std::to_string(loc.getLine()) + ":" + std::to_string(loc.getColumn()) + ")";
  return text;
}

/// "'send' (ring.mlir:7:5) at mesh position 1".
static std::string nameOf(Operation *op, int64_t position) {
  return nameOf(op) + " at mesh position " + std::to_string(position);
}

/// The messages of a row at a position.
void Rendezvous::forEachTransfer(unsigned row, int64_t position, OnTransfer onTransfer) {
  for (const Message &message : messages[row])
    if (int64_t other = message.peers[position]; other >= 0)
      onTransfer(message.isSend, other, cast<BufferType>(message.buffer.getType()));
}

void Rendezvous::collect() {
  Block &body = program.getBody().front();
  classOf.resize(positions);
  for (auto [number, at] : llvm::enumerate(classes.get()))
    for (int64_t position : at.positions)
      classOf[position] = number;
  llvm::DenseMap<Operation *, llvm::SmallSetVector<unsigned, 4>> passedBy; // rows, by classes that only wait for them
  for (Operation &op : body) {
    if (auto row = dyn_cast<RowOpInterface>(op))
      numStreams = std::max(numStreams, row.getStreamIndex() + 1);
    auto wait = dyn_cast<WaitOp>(op);
    if (!wait)
      continue;
    numStreams = std::max<int64_t>(numStreams, wait.getStream() + 1);
    Operation *row = wait.getToken().getDefiningOp();
    for (unsigned number : classes.of(wait))
      if (!llvm::binary_search(classes.of(row), number))
        passedBy[row].insert(number);
  }
  steps.assign(classes.size(), SmallVector<SmallVector<Step, 0>>(numStreams));

  DenseMap<Value, unsigned> signalled;
  unsigned place = 0;
  for (Operation &op : body) {
    ++place;
    if (auto wait = dyn_cast<WaitOp>(op)) {
      for (unsigned number : classes.of(&op))
        steps[number][wait.getStream()].push_back({&op, signalled.lookup(wait.getToken()), place});
    } else if (auto row = dyn_cast<RowOpInterface>(op)) {
      unsigned number = rows.size();
      rows.push_back(&op);
      if (Value token = row.getSignal())
        signalled[token] = number;
      bool meets = row.getMeeting() == Meeting::Group;
      int64_t stream = row.getStreamIndex();
      row.getMessages(mesh, messages.emplace_back());
      for (unsigned running : classes.of(&op)) {
        steps[running][stream].push_back(
            {&op, number, place, true, meets ? row.getGroup() : dist::AxesAttr()});
        for (int64_t position : classes[running].positions)
          forEachTransfer(number, position, [&](bool isSend, int64_t other, BufferType type) {
            int64_t from = isSend ? position : other, to = isSend ? other : position;
            Channel &channel = channels[{stream, from, to}];
            (isSend ? channel.sends : channel.recvs).push_back({&op, type});
          });
      }
      if (auto others = passedBy.find(&op); others != passedBy.end())
        for (unsigned passing : others->second)
          steps[passing][stream].push_back({&op, number, place, false});
    }
  }
  lanes.resize(positions * numStreams);
  ended.assign(rows.size(), std::vector<bool>(positions, false));
}

/// Every send has its receive and the other way round, of the same type.
LogicalResult Rendezvous::matchEnds() {
  for (auto &[key, channel] : channels) {
    auto [stream, from, to] = key;
    for (auto [send, recv] : llvm::zip(channel.sends, channel.recvs))
      if (send.type != recv.type)
        return emitError(recv.op->getLoc()) << nameOf(recv.op, to) << " receives " << recv.type
                                      << ", but " << nameOf(send.op, from) << " sends it "
                                      << send.type;
    size_t sends = channel.sends.size(), recvs = channel.recvs.size();
    if (sends > recvs)
      return emitError(channel.sends[recvs].op->getLoc())
             << nameOf(channel.sends[recvs].op, from) << " sends to mesh position " << to
             << ", where no receive on stream " << stream << " matches it";
    if (recvs > sends)
      return emitError(channel.recvs[sends].op->getLoc())
             << nameOf(channel.recvs[sends].op, to) << " receives from mesh position " << from
             << ", where no send on stream " << stream << " matches it";
  }
  return success();
}

/// The row at the head of the lane is over.
void Rendezvous::finish(Place place) {
  Lane &lane = laneAt(place);
  unsigned row = stepsAt(place)[lane.next].row;
  ended[row][place.position] = true;
  lane.running = false;
  lane.transfers.clear();
  ++lane.next;
  work.push_back(place);
  // Any other stream of the position may wait for the row.
  if (cast<RowOpInterface>(rows[row]).getSignal())
    for (int64_t stream = 0; stream < numStreams; ++stream)
      work.push_back({place.position, stream});
}

/// Starts the messages of a row; whether there are any.
bool Rendezvous::startMessages(Place place, const Step &step) {
  Lane &lane = laneAt(place);
  forEachTransfer(step.row, place.position, [&](bool isSend, int64_t other, BufferType) {
    int64_t from = isSend ? place.position : other, to = isSend ? other : place.position;
    Channel &channel = channels[{place.stream, from, to}];
    size_t number = isSend ? channel.sent++ : channel.received++;
    lane.transfers.push_back({&channel, isSend, number, other});
    ++lane.open;
  });
  if (lane.transfers.empty())
    return false;
  lane.running = true;
  // What has met now; the other end belongs to the row that runs there. A message to oneself is in
  // the list twice.
  SmallVector<Place> done;
  for (const Transfer &transfer : lane.transfers) {
    if (!transfer.isMet())
      continue;
    --lane.open;
    Place there{transfer.other, place.stream};
    if (there != place && --laneAt(there).open == 0)
      done.push_back(there);
  }
  if (lane.open == 0)
    done.push_back(place);
  for (Place other : done)
    finish(other);
  return true;
}

/// Joins a collective, which ends when all of its group have; whether the row is one.
bool Rendezvous::joinGroup(Place place, const Step &step) {
  if (!step.axes)
    return false;
  ArrayRef<StringAttr> axes = step.axes.getAxes();
  laneAt(place).running = true;
  int64_t size = mesh.getSize(axes);
  int64_t first = mesh.getPositionAlong(place.position, axes, 0);
  if (++arrived[{step.row, first}] == size)
    for (int64_t index = 0; index < size; ++index)
      finish({mesh.getPositionAlong(place.position, axes, index), place.stream});
  return true;
}

/// Runs a lane until a row there has to wait.
void Rendezvous::advance(Place place) {
  Lane &lane = laneAt(place);
  ArrayRef<Step> own = stepsAt(place);
  while (!lane.running && lane.next < own.size()) {
    const Step &step = own[lane.next];
    if (isa<WaitOp>(step.op)) {
      if (!ended[step.row][place.position])
        return;
      ++lane.next;
    } else if (!step.runs || (!joinGroup(place, step) && !startMessages(place, step))) {
      finish(place);
    }
  }
}

/// What holds up a lane that has not come to its end.
Place Rendezvous::waitsFor(Place place) {
  const Lane &lane = laneAt(place);
  const Step &step = stepsAt(place)[lane.next];
  if (isa<WaitOp>(step.op))
    return {place.position, cast<RowOpInterface>(rows[step.row]).getStreamIndex()};
  if (!step.axes) {
    const Transfer *open =
        llvm::find_if(lane.transfers, [](const Transfer &transfer) { return !transfer.isMet(); });
    return {open->other, place.stream};
  }
  ArrayRef<StringAttr> axes = step.axes.getAxes();
  for (int64_t index = 0;; ++index) {
    Place member{mesh.getPositionAlong(place.position, axes, index), place.stream};
    const Lane &other = laneAt(member);
    if (!other.running || stepsAt(member)[other.next].place < step.place)
      return member;
  }
}

std::string Rendezvous::nameAt(Place place) {
  const Step &step = stepsAt(place)[laneAt(place).next];
  std::string name = nameOf(rows[step.row], place.position);
  return isa<WaitOp>(step.op) ? "the wait for " + name : name;
}

LogicalResult Rendezvous::reportCycle(Place start) {
  // Following what each waits for ends in a cycle, as every lane there waits.
  SmallVector<Place> path;
  Place place = start;
  while (!llvm::is_contained(path, place)) {
    path.push_back(place);
    place = waitsFor(place);
  }
  path.erase(path.begin(), llvm::find(path, place));
  std::string text = nameAt(place);
  size_t named = std::min(path.size(), kMaxNamed);
  for (size_t i = 1; i < named; ++i)
    text += (i > 1 ? ", which waits for " : " waits for ") + nameAt(path[i]);
  text += named > 1 ? ", which waits for " : " waits for ";
  if (named < path.size())
    text += std::to_string(path.size() - named) + " more up to ";
  text += path.size() > 1 ? nameAt(place) : "itself";
  Operation *waiting = stepsAt(place)[laneAt(place).next].op;
  return emitError(waiting->getLoc()) << "the program deadlocks: " << text;
}

LogicalResult Rendezvous::run() {
  collect();
  if (failed(matchEnds()))
    return failure();
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t stream = 0; stream < numStreams; ++stream)
      work.push_back({position, stream});
  while (!work.empty())
    advance(work.pop_back_val());
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t stream = 0; stream < numStreams; ++stream)
      if (Place place{position, stream}; laneAt(place).next < stepsAt(place).size())
        return reportCycle(place);
  return success();
}

/// Every collective has its whole group.
static LogicalResult checkGroups(ProgramOp program, dist::MeshAttr mesh) {
  for (auto row : program.getBody().getOps<RowOpInterface>()) {
    dist::AxesAttr axes = row.getGroup();
    if (!axes || !row->hasAttr(ExecDialect::kAtAttr) || row.getMeeting() == Meeting::None)
      continue;
    llvm::BitVector at(mesh.getNumDevices());
    for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
      at[position] = runsAt(row, position);
    if (std::optional<dist::GroupGap> gap = dist::findGap(mesh, axes.getAxes(), at))
      return emitError(row->getLoc()) << nameOf(row) << " needs every position of its group: position "
                              << gap->missing << " does not enter it, position " << gap->inside
                              << " does";
  }
  return success();
}

LogicalResult checkRendezvous(ProgramOp program) {
  dist::MeshOp mesh = dist::lookupMesh(program);
  if (mesh && failed(checkGroups(program, mesh.getMesh())))
    return failure();
  // All positions run the same rows in the same order, so without messages whose ends are in
  // different rows the first row that has not ended can always go on.
  bool straight = llvm::none_of(program.getBody().getOps<RowOpInterface>(), [](RowOpInterface row) {
    return row.getMeeting() == Meeting::Pairs && !row.getGroup();
  });
  if (straight)
    return success();
  return Rendezvous(program, mesh.getMesh()).run();
}

} // namespace shoal::exec
