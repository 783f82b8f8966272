// Communication rows as non-blocking MPI calls, and reductions and gathers in windows.
#include "mpi/fabric.h"
#include "core/error.h"
#include "mpi/world.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cstring>

namespace shoal::rt {

// Messages between two ranks match in the order in which a stream issues them.
static constexpr int kTag = 1;
static constexpr uint32_t kTestsPerProbe = 16;

Fabric::Fabric(const Program &program, uint32_t position, const Arena &arena, LocalComm localComm)
    : program_(program), position_(position), arena_(arena.base()), localComm_(localComm),
      channelOf_(program.instrs().size(), nullptr), pending_(program.instrs().size()),
      traffic_(program.instrs().size()), inWindow_(program.instrs().size(), false) {
  for (uint32_t row = 0; row < program.instrs().size(); ++row) {
    const Instr &instr = program.instrs()[row];
    if (!isCommunication(instr.op))
      continue;
    bool peers = instr.op == Opcode::Permute || instr.op == Opcode::PointToPoint;
    std::pair key(peers ? kNone : instr.a, instr.stream);
    auto at = channels_.find(key);
    if (at == channels_.end())
      at = channels_.emplace(key, makeChannel(key.first, key.second)).first;
    channelOf_[row] = &at->second;
  }
  if (localComm != LocalComm::Mpi && program.numPositions() > 1)
    makeWindows(arena);
}

Fabric::~Fabric() {
  shared_.reset();
  if (node_ != MPI_COMM_NULL)
    MPI_Comm_free(&node_);
  for (auto &[key, channel] : channels_)
    MPI_Comm_free(&channel.comm);
}

bool Fabric::wantsWindow(uint32_t row) const {
  const Instr &instr = program_.instrs()[row];
  if (!goesThroughWindows(instr.op) || channelOf_[row]->nodeRanks.size() < 2)
    return false;
  size_t whole = instr.op == Opcode::AllGather ? 1 : 0; // the operand
  const View &view = program_.views()[program_.operands(instr)[whole]];
  return localComm_ == LocalComm::Windows ||
         view.elements * elementBytes(view.dtype) >= kWindowBytes;
}

// A row may be between ranks of this machine in one group and not in another, so the ranks
// first agree on the buffers that any of them shares: offsets are then the same everywhere.
void Fabric::makeWindows(const Arena &arena) {
  auto require = [](int status) {
    if (status != MPI_SUCCESS)
      workFailed("MPI cannot find the ranks of this machine: ", mpiErrorText(status));
  };
  require(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_));
  MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN);
  int nodeRank = 0;
  MPI_Comm_rank(node_, &nodeRank);
  isFirstOfMachine_ = nodeRank == 0;
  MPI_Group node = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm_group(node_, &node);
  for (auto &[key, channel] : channels_) {
    std::vector<int> places(size_t(channel.size));
    for (int place = 0; place < channel.size; ++place)
      places[size_t(place)] = place;
    channel.nodeRanks.resize(places.size());
    MPI_Comm_group(channel.comm, &members);
    require(MPI_Group_translate_ranks(members, channel.size, places.data(), node,
                                      channel.nodeRanks.data()));
    MPI_Group_free(&members);
    for (int rank : channel.nodeRanks)
      if (rank == MPI_UNDEFINED) {
        channel.nodeRanks.clear();
        break;
      }
  }
  MPI_Group_free(&node);

  std::vector<uint8_t> wanted(inWindow_.size(), 0);
  for (uint32_t row = 0; row < wanted.size(); ++row)
    wanted[row] = wantsWindow(row);
  std::vector<uint8_t> mine = wanted;
  require(MPI_Allreduce(mine.data(), wanted.data(), int(wanted.size()), MPI_UINT8_T, MPI_MAX, node_));
  std::vector<ByteRange> ranges;
  for (uint32_t row = 0; row < wanted.size(); ++row)
    if (wanted[row])
      for (uint32_t operand : program_.operands(program_.instrs()[row])) {
        const View &view = program_.views()[operand];
        ranges.push_back({view.offset, view.offset + view.elements * elementBytes(view.dtype)});
        if (program_.instrs()[row].op != Opcode::AllReduce)
          break; // each rank writes its own output
      }
  if (ranges.empty()) {
    if (localComm_ == LocalComm::Windows)
      windowProblem_ = "no all-reduce, all-gather or reduce-scatter is between ranks of one machine";
    return;
  }
  shared_ = std::make_unique<SharedArena>(node_, arena, std::move(ranges), channels_.size());
  windowProblem_ = shared_->problem();
  if (!windowProblem_.empty()) {
    shared_.reset();
    return;
  }
  size_t counter = 0;
  for (auto &[key, channel] : channels_) {
    if (!channel.nodeRanks.empty())
      channel.window = std::make_unique<WindowChannel>(*shared_, channel.nodeRanks,
                                                       size_t(channel.rank), counter);
    ++counter;
  }
  for (uint32_t row = 0; row < mine.size(); ++row)
    inWindow_[row] = mine[row];
}

Fabric::Channel Fabric::makeChannel(uint32_t group, uint32_t stream) const {
  Channel channel;
  int status = MPI_SUCCESS;
  std::string name = "shoal stream " + std::to_string(stream) + " {";
  if (group == kNone) { // point to point: ranked by mesh position
    status = MPI_Comm_split(MPI_COMM_WORLD, 0, int(position_), &channel.comm);
    name += "*";
  } else {
    std::span<const uint32_t> axes = program_.axesOf(program_.groups()[group]);
    std::vector<uint32_t> others;
    for (uint32_t axis = 0; axis < program_.axes().size(); ++axis) {
      bool inGroup = false;
      for (uint32_t member : axes)
        inGroup |= member == axis;
      if (!inGroup)
        others.push_back(axis);
    }
    for (uint32_t axis : axes)
      name += (name.back() == '{' ? "" : ",") + std::string(program_.str(program_.axes()[axis].name));
    status = MPI_Comm_split(MPI_COMM_WORLD, int(program_.linear(position_, others)),
                            int(program_.linear(position_, axes)), &channel.comm);
  }
  if (status != MPI_SUCCESS || channel.comm == MPI_COMM_NULL)
    workFailed("MPI cannot make the communicator '", name, "}': ", mpiErrorText(status));
  // The name lets MPI tools tell the program's traffic from the runtime's own.
  MPI_Comm_set_name(channel.comm, (name + "}").c_str());
  MPI_Comm_set_errhandler(channel.comm, MPI_ERRORS_RETURN);
  MPI_Comm_size(channel.comm, &channel.size);
  MPI_Comm_rank(channel.comm, &channel.rank);
  return channel;
}

void Fabric::check(uint32_t row, int status) const {
  if (status == MPI_SUCCESS)
    return;
  const Instr &instr = program_.instrs()[row];
  workFailed(opcodeName(instr.op), " '", program_.str(instr.name), "' (row ", row, "): ",
             mpiErrorText(status));
}

void Fabric::count(uint32_t row, const Channel &channel, uint64_t root, uint64_t elements,
                   MPI_Datatype type) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  traffic_[row].calls += 1;
  traffic_[row].bytes += sentBytes(program_.instrs()[row].op, uint64_t(channel.size),
                                   uint64_t(channel.rank), root, elements, uint64_t(bytes));
}

void Fabric::start(uint32_t row) {
  const Instr &instr = program_.instrs()[row];
  pending_[row].clear();
  if (instr.op == Opcode::Permute || instr.op == Opcode::PointToPoint)
    startPeers(row, instr);
  else
    startCollective(row, instr);
}

void Fabric::startCollective(uint32_t row, const Instr &instr) {
  const Channel &channel = *channelOf_[row];
  MPI_Comm comm = channel.comm;
  MPI_Request request = MPI_REQUEST_NULL;
  if (instr.op == Opcode::Barrier) {
    check(row, MPI_Ibarrier(comm, &request));
    count(row, channel, 0, 0, MPI_BYTE);
    pending_[row].push_back(request);
    return;
  }
  std::span<const uint32_t> operands = program_.operands(instr);
  const View &inView = program_.views()[operands[0]], &outView = program_.views()[operands[1]];
  void *in = address(operands[0]), *out = address(operands[1]);
  int inCount = int(inView.elements), outCount = int(outView.elements);
  MPI_Datatype type = mpiType(inView.dtype);
  int root = program_.params(instr).empty() ? 0 : int(program_.params(instr)[0]);
  bool isRoot = root == channel.rank;
  uint64_t full = uint64_t(inCount); // elements of the full buffer, see sentBytes()

  if (inWindow_[row]) {
    if (instr.op == Opcode::AllGather) {
      channel.window->allGather(inView.offset, static_cast<char *>(out),
                                inView.elements * elementBytes(inView.dtype));
      full = uint64_t(inCount) * uint64_t(channel.size);
    } else if (instr.op == Opcode::ReduceScatter) {
      channel.window->reduceScatter(inView.offset, static_cast<char *>(out), inView.elements,
                                    inView.dtype, Reduction(instr.b));
    } else {
      channel.window->allReduce(inView.offset, outView.offset, inView.elements, inView.dtype,
                                Reduction(instr.b));
    }
    count(row, channel, 0, full, type);
    return;
  }
  switch (instr.op) {
  case Opcode::AllReduce:
    check(row, MPI_Iallreduce(in == out ? MPI_IN_PLACE : in, out, inCount, type,
                              ops_.get(inView.dtype, Reduction(instr.b)), comm, &request));
    break;
  case Opcode::AllGather:
    check(row, MPI_Iallgather(in, inCount, type, out, inCount, type, comm, &request));
    full = uint64_t(inCount) * uint64_t(channel.size);
    break;
  case Opcode::ReduceScatter:
    check(row, MPI_Ireduce_scatter_block(in, out, outCount, type,
                                         ops_.get(inView.dtype, Reduction(instr.b)), comm,
                                         &request));
    full = uint64_t(outCount) * uint64_t(channel.size);
    break;
  case Opcode::AllToAll:
    check(row, MPI_Ialltoall(in, inCount / channel.size, type, out, inCount / channel.size, type,
                             comm, &request));
    break;
  case Opcode::Broadcast:
    if (isRoot && in != out)
      std::memcpy(out, in, outView.elements * elementBytes(outView.dtype));
    check(row, MPI_Ibcast(out, outCount, type, root, comm, &request));
    break;
  case Opcode::Scatter:
    check(row, MPI_Iscatter(in, outCount, type, out, outCount, type, root, comm, &request));
    full = uint64_t(outCount) * uint64_t(channel.size);
    break;
  case Opcode::Gather:
    if (!isRoot)
      std::memset(out, 0, outView.elements * elementBytes(outView.dtype));
    check(row, MPI_Igather(in, inCount, type, out, inCount, type, root, comm, &request));
    full = uint64_t(inCount) * uint64_t(channel.size);
    break;
  default:
    workFailed("row ", row, " is no collective");
  }
  count(row, channel, uint64_t(root), full, type);
  pending_[row].push_back(request);
}

void Fabric::startPeers(uint32_t row, const Instr &instr) {
  const Channel &channel = *channelOf_[row];
  // Receives first, so that arriving messages find their place.
  for (bool sends : {false, true})
    for (const Peer &peer : program_.peers(instr)) {
      if (bool(peer.isSend) != sends)
        continue;
      const View &view = program_.views()[peer.view];
      MPI_Datatype type = mpiType(view.dtype);
      uint32_t other = program_.peerOf(peer, position_);
      if (other == kNone) {
        if (!sends && instr.op == Opcode::Permute)
          std::memset(address(peer.view), 0, view.elements * elementBytes(view.dtype));
        continue;
      }
      MPI_Request request = MPI_REQUEST_NULL;
      if (sends) {
        check(row, MPI_Isend(address(peer.view), int(view.elements), type, int(other), kTag,
                             channel.comm, &request));
        bool leaves = other != uint32_t(channel.rank);
        traffic_[row].bytes += sentBytes(instr.op, leaves ? 2 : 1, 0, 0, view.elements,
                                         elementBytes(view.dtype));
        if (instr.op == Opcode::PointToPoint)
          traffic_[row].calls += 1;
      } else {
        check(row, MPI_Irecv(address(peer.view), int(view.elements), type, int(other), kTag,
                             channel.comm, &request));
      }
      pending_[row].push_back(request);
    }
  if (instr.op == Opcode::Permute)
    traffic_[row].calls += 1;
}

bool Fabric::test(uint32_t row) {
  if (inWindow_[row]) {
    const Channel &channel = *channelOf_[row];
    if (channel.window->test())
      return true;
    // MPI may hold a message of ours that another rank needs before it gets here, and moves
    // it only in its calls.
    int found = 0;
    if (++windowTests_ % kTestsPerProbe == 0)
      check(row, MPI_Iprobe(MPI_ANY_SOURCE, kTag, channel.comm, &found, MPI_STATUS_IGNORE));
    return false;
  }
  int done = 0;
  Requests &pending = pending_[row];
  check(row, MPI_Testall(int(pending.size()), pending.data(), &done, MPI_STATUSES_IGNORE));
  return done != 0;
}

void Fabric::report(uint64_t steps, RankReport &to) const {
  ReportJson transport = ReportJson::array();
  for (uint32_t row = 0; row < traffic_.size(); ++row) {
    const Instr &instr = program_.instrs()[row];
    const Traffic &traffic = traffic_[row];
    if (!isCommunication(instr.op) || traffic.calls == 0)
      continue;
    if (traffic.calls % steps != 0 || traffic.bytes % steps != 0)
      workFailed(opcodeName(instr.op), " '", program_.str(instr.name), "' was called ",
                 traffic.calls, " times in ", steps, " steps and cannot be reported per step");
    std::vector<std::string> axes;
    if (instr.a != kNone)
      for (uint32_t axis : program_.axesOf(program_.groups()[instr.a]))
        axes.emplace_back(program_.str(program_.axes()[axis].name));
    const char *kind = collectiveKind(instr.op);
    to.addCollective(kind, axes, traffic.calls / steps, traffic.bytes / steps);

    ReportJson line = {{"kind", kind}, {"axes", axes}, {"via", inWindow_[row] ? "windows" : "mpi"}};
    auto known = std::find_if(transport.begin(), transport.end(), [&](const ReportJson &other) {
      return other["kind"] == line["kind"] && other["axes"] == line["axes"] &&
             other["via"] == line["via"];
    });
    if (known == transport.end()) {
      line["count"] = 0;
      transport.push_back(line);
      known = std::prev(transport.end());
    }
    (*known)["count"] = (*known)["count"].get<uint64_t>() + traffic.calls / steps;
  }
  if (transport.empty())
    return;
  to.measured["transport"] = std::move(transport);
  to.measured["shared_bytes"] = shared_ ? shared_->bytes() : 0;
  if (!windowProblem_.empty())
    to.measured["no_windows"] = windowProblem_;
}

} // namespace shoal::rt
