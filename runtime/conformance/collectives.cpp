// Conformance of communication rows on real ranks: every operation, element type and
// stream, over every group of axes of meshes of the given size, with permuted device ids.
// The expected values are computed from all positions' inputs by the definitions in
// shoal-rt/program.h, the expected traffic by the ring formulas, written out again here.
//   mpirun -n N collectives windows|mpi     (N = 1, 2, 3, 4, 6)
#include "core/arena.h"
#include "core/element.h"
#include "core/executor.h"
#include "mpi/fabric.h"
#include "mpi/world.h"
#include "shoal-rt/blob_builder.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

using namespace shoal::rt;

namespace {

struct Mesh {
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> deviceIds; // empty: identity
};

struct Case {
  Mesh mesh;
  std::vector<uint32_t> group; // axes, major to minor
  Opcode op;
  Reduction reduction = Reduction::Sum;
  DType type = DType::F32;
  uint32_t stream = 1;
  uint32_t root = 0;
  bool inPlace = false;
  uint64_t elements = 5; // per chunk
};

class Harness {
public:
  Harness(World &world, LocalComm localComm) : world_(world), localComm_(localComm) {}
  // Runs all cases of a mesh as the rows of one program, several streams at once. With a
  // seed, ranks come late to some of them, each to others and by other times.
  void run(const std::vector<Case> &tests, std::optional<uint32_t> delays = {});
  void check(bool holds, const Case &test, const std::string &what) {
    if (holds)
      return;
    ++failures_;
    std::printf("rank %d: %s over %zu axes, %s, stream %u, root %u: %s\n", world_.rank(),
                opcodeName(test.op), test.group.size(), dtypeName(test.type), test.stream,
                test.root, what.c_str());
  }
  LocalComm localComm() const { return localComm_; }
  size_t cases() const { return cases_; }
  int failures() const { return failures_; }

private:
  void checkTransport(const ReportJson &measured, const std::vector<Case> &tests);

  World &world_;
  LocalComm localComm_;
  size_t cases_ = 0;
  int failures_ = 0;
};

// Small integers, exact in every type and order of summation.
double input(uint32_t position, uint64_t element, uint64_t step, DType type) {
  uint64_t value = (position * 5 + element * 3 + step) % 7;
  return type == DType::I1 ? double(value % 2) : double(value);
}

// Mesh positions of a group that contains `position`, in group order.
std::vector<uint32_t> members(const Program &program, const std::vector<uint32_t> &group,
                              uint32_t position) {
  std::vector<uint32_t> others;
  for (uint32_t axis = 0; axis < program.axes().size(); ++axis)
    if (std::find(group.begin(), group.end(), axis) == group.end())
      others.push_back(axis);
  std::vector<uint32_t> found(program.extent(group));
  for (uint32_t p = 0; p < program.numPositions(); ++p)
    if (program.linear(p, others) == program.linear(position, others))
      found[program.linear(p, group)] = p;
  return found;
}

double reduce(Reduction reduction, double a, double b) {
  return reduction == Reduction::Sum ? a + b
         : reduction == Reduction::Max ? std::max(a, b)
                                       : std::min(a, b);
}

// Where a permute sends to: the next position, but the last one sends nothing, so that
// position 0 receives zeros.
uint32_t permuteTarget(uint32_t position, uint32_t positions) {
  return position + 1 < positions ? position + 1 : kNone;
}

// Element `i` of the output at group place `me`.
double expected(const Case &test, const std::vector<uint32_t> &group, uint32_t me, uint64_t i,
                uint64_t step, uint32_t position) {
  uint64_t chunk = test.elements;
  auto in = [&](uint32_t place, uint64_t element) {
    return input(group[place], element, step, test.type);
  };
  switch (test.op) {
  case Opcode::AllReduce:
  case Opcode::ReduceScatter: {
    uint64_t element = test.op == Opcode::AllReduce ? i : me * chunk + i;
    double value = in(0, element);
    for (uint32_t place = 1; place < group.size(); ++place)
      value = reduce(test.reduction, value, in(place, element));
    return value;
  }
  case Opcode::AllGather:
    return in(uint32_t(i / chunk), i % chunk);
  case Opcode::AllToAll:
    return in(uint32_t(i / chunk), me * chunk + i % chunk);
  case Opcode::Broadcast:
    return in(test.root, i);
  case Opcode::Scatter:
    return in(test.root, me * chunk + i);
  case Opcode::Gather:
    return me == test.root ? in(uint32_t(i / chunk), i % chunk) : 0.0;
  case Opcode::Permute:
    return position == 0 ? 0.0 : input(position - 1, i, step, test.type);
  default: // PointToPoint: an exchange around the ring of all positions
    return 0.0;
  }
}

uint64_t expectedBytes(const Case &test, uint64_t ranks, uint64_t me, uint32_t position,
                       uint32_t positions) {
  uint64_t size = elementBytes(test.type), chunk = test.elements;
  switch (test.op) {
  case Opcode::AllReduce:
    return 2 * (ranks - 1) * ((chunk + ranks - 1) / ranks) * size;
  case Opcode::Broadcast:
    return ranks == 1 || (me + ranks - test.root) % ranks == ranks - 1 ? 0 : chunk * size;
  case Opcode::Scatter:
    return me == test.root ? (ranks - 1) * chunk * size : 0;
  case Opcode::Gather:
    return me == test.root ? 0 : chunk * size;
  case Opcode::Permute:
    return position + 1 < positions ? chunk * size : 0;
  default: // all-gather, reduce-scatter, all-to-all
    return (ranks - 1) * chunk * size;
  }
}

uint32_t positionsOf(const Mesh &mesh) {
  uint32_t positions = 1;
  for (uint32_t size : mesh.sizes)
    positions *= size;
  return positions;
}

// A case in the arena.
struct Placed {
  uint64_t inOffset, inElements, outOffset, outElements;
};

// Adds the row of a case, on views of its own.
Placed addCase(BlobBuilder &blob, const Case &test, uint32_t row) {
  uint32_t ranks = 1;
  for (uint32_t axis : test.group)
    ranks *= test.mesh.sizes[axis];
  bool splitsIn = test.op == Opcode::ReduceScatter || test.op == Opcode::AllToAll ||
                  test.op == Opcode::Scatter;
  bool splitsOut = test.op == Opcode::AllGather || test.op == Opcode::AllToAll ||
                   test.op == Opcode::Gather;
  uint64_t &arena = blob.header().arenaBytes;
  auto place = [&](uint64_t elements) {
    uint64_t at = arena;
    arena += (elements * 8 + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  Placed placed{};
  placed.inElements = test.elements * (splitsIn ? ranks : 1);
  placed.outElements = test.elements * (splitsOut ? ranks : 1);
  placed.inOffset = place(placed.inElements);
  placed.outOffset = test.inPlace ? placed.inOffset : place(placed.outElements);
  uint32_t in = blob.addView(placed.inOffset, placed.inElements, test.type);
  uint32_t out = blob.addView(placed.outOffset, placed.outElements, test.type);
  BlobBuilder::InstrSpec spec{.op = test.op, .stream = test.stream, .event = row,
                              .a = blob.addGroup(test.group), .b = uint32_t(test.reduction),
                              .operands = {in, out}};
  if (test.op == Opcode::Broadcast || test.op == Opcode::Scatter || test.op == Opcode::Gather)
    spec.params = {test.root};
  if (test.op == Opcode::Permute) {
    uint32_t positions = positionsOf(test.mesh);
    BlobBuilder::PeerSpec send{true, in, {}}, receive{false, out, {}};
    for (uint32_t p = 0; p < positions; ++p) {
      send.positions.push_back(permuteTarget(p, positions));
      receive.positions.push_back(p == 0 ? kNone : p - 1);
    }
    spec.peers = {send, receive};
  }
  blob.addInstr(spec);
  return placed;
}

// With windows, all reductions and gathers to all between ranks go through them and nothing else does.
void Harness::checkTransport(const ReportJson &measured, const std::vector<Case> &tests) {
  const Case &test = tests[0];
  for (const ReportJson &line : measured["transport"]) {
    uint32_t ranks = 1;
    for (const std::string axis : line["axes"])
      ranks *= test.mesh.sizes[size_t(axis.back() - '0')];
    bool reduces = line["kind"] == "all_reduce" || line["kind"] == "all_gather" || line["kind"] == "reduce_scatter";
    bool inWindow = localComm_ == LocalComm::Windows && reduces && ranks > 1;
    check(line["via"] == (inWindow ? "windows" : "mpi"), test, cat("carried as ", line.dump()));
  }
}

std::minstd_rand ownRandom; // of this rank

// Mostly short, and now and then longer than any other rank would wait by spinning.
void comeLate(void *const *) {
  uint32_t drawn = ownRandom();
  std::this_thread::sleep_for(std::chrono::microseconds(drawn % 41 == 0 ? 50'000 : drawn % 300));
}

// Makes `stream` wait for a kernel that comes late; signals `event`.
void addDelay(BlobBuilder &blob, uint32_t scratch, uint32_t stream, uint32_t event) {
  blob.addInstr({.op = Opcode::Launch, .event = event, .a = 0, .operands = {scratch}});
  if (stream != 0)
    blob.addInstr({.op = Opcode::Wait, .stream = stream, .params = {event}});
}

void Harness::run(const std::vector<Case> &tests, std::optional<uint32_t> delays) {
  cases_ += tests.size();
  const Mesh &mesh = tests[0].mesh;
  BlobBuilder blob("conformance");
  for (size_t i = 0; i < mesh.sizes.size(); ++i)
    blob.addAxis("axis" + std::to_string(i), mesh.sizes[i]);
  if (!mesh.deviceIds.empty())
    blob.setDeviceIds(mesh.deviceIds);
  std::minstd_rand random(delays.value_or(0)); // the same rows on all ranks
  ownRandom.seed(delays.value_or(0) * 16 + uint32_t(world_.rank()) + 1);
  uint32_t scratch = blob.addView(0, 8, DType::F64), nextEvent = uint32_t(tests.size());
  blob.header().arenaBytes = kAlignment;
  blob.header().numKernels = 1;
  std::vector<Placed> placed;
  for (const Case &test : tests) {
    if (delays && random() % 3 == 0)
      addDelay(blob, scratch, test.stream, nextEvent++);
    placed.push_back(addCase(blob, test, uint32_t(placed.size())));
  }
  for (uint32_t event = 0; event < tests.size(); ++event)
    blob.addInstr({.op = Opcode::Wait, .params = {event}});

  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  uint32_t position = program.positionOfRank(uint32_t(world_.rank()));
  Arena arena(program.header().arenaBytes);
  Fabric fabric(program, position, arena, localComm_);
  const shoal_rt_kernel kernels[] = {comeLate};
  Executor executor(program, position, kernels, arena.base(), fabric, world_.crowded(),
                    world_.beacon());
  constexpr uint64_t steps = 3;
  for (uint64_t step = 0; step < steps; ++step) {
    std::memset(arena.base(), 0x5a, arena.size());
    for (size_t i = 0; i < tests.size(); ++i)
      for (uint64_t e = 0; e < placed[i].inElements; ++e)
        storeElement(arena.base() + placed[i].inOffset, tests[i].type, e,
                     input(position, e, step, tests[i].type));
    executor.step([](uint32_t) {});
    for (size_t i = 0; i < tests.size(); ++i) {
      const Case &test = tests[i];
      std::vector<uint32_t> places = members(program, test.group, position);
      uint32_t me = program.linear(position, test.group);
      for (uint64_t e = 0; e < placed[i].outElements; ++e) {
        double got = loadElement(arena.base() + placed[i].outOffset, test.type, e);
        double want = expected(test, places, me, e, step, position);
        if (got == want)
          continue;
        check(false, test, cat("element ", e, " is ", got, ", expected ", want));
        break;
      }
    }
  }

  RankReport report, wanted;
  fabric.report(steps, report);
  for (const Case &test : tests) {
    std::vector<std::string> axes;
    for (uint32_t axis : test.group)
      axes.push_back("axis" + std::to_string(axis));
    wanted.addCollective(collectiveKind(test.op), axes, 1,
                         expectedBytes(test, program.extent(test.group),
                                       program.linear(position, test.group), position,
                                       program.numPositions()));
  }
  checkTransport(report.measured, tests);
  report.measured.clear();
  std::string got = toJson(report).dump(), want = toJson(wanted).dump();
  check(got == want, tests[0], cat("reports ", got, ", expected ", want));
}

// A group of sends and receives in both directions at once: each position exchanges with
// its neighbours on the ring, which no order of blocking calls could do.
void runExchange(Harness &harness, World &world, const Mesh &mesh, uint32_t stream) {
  uint32_t positions = positionsOf(mesh);
  constexpr uint64_t elements = 100'000; // beyond the eager limit
  Case test{mesh, {}, Opcode::PointToPoint, Reduction::Sum, DType::F64, stream};
  BlobBuilder blob("exchange");
  for (uint32_t size : mesh.sizes)
    blob.addAxis("axis" + std::to_string(size), size);
  if (!mesh.deviceIds.empty())
    blob.setDeviceIds(mesh.deviceIds);
  uint32_t mine = blob.addView(0, elements, DType::F64);
  uint32_t left = blob.addView(elements * 8, elements, DType::F64);
  uint32_t right = blob.addView(2 * elements * 8, elements, DType::F64);
  blob.header().arenaBytes = 3 * elements * 8;
  BlobBuilder::PeerSpec toRight{true, mine, {}}, toLeft{true, mine, {}};
  BlobBuilder::PeerSpec fromLeft{false, left, {}}, fromRight{false, right, {}};
  for (uint32_t p = 0; p < positions; ++p) {
    toRight.positions.push_back((p + 1) % positions);
    fromLeft.positions.push_back((p + positions - 1) % positions);
    toLeft.positions.push_back((p + positions - 1) % positions);
    fromRight.positions.push_back((p + 1) % positions);
  }
  blob.addInstr({.op = Opcode::PointToPoint, .stream = stream, .event = 0, .a = kNone,
                 .peers = {toRight, toLeft, fromLeft, fromRight}, .name = "exchange"});
  blob.addInstr({.op = Opcode::Wait, .params = {0}});
  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  uint32_t position = program.positionOfRank(uint32_t(world.rank()));
  Arena arena(program.header().arenaBytes);
  Fabric fabric(program, position, arena, harness.localComm());
  Executor executor(program, position, nullptr, arena.base(), fabric, world.crowded(),
                    world.beacon());
  for (uint64_t i = 0; i < elements; ++i)
    storeElement(arena.base(), DType::F64, i, position * 1000.0 + double(i % 17));
  executor.step([](uint32_t) {});
  // With two ranks both messages come from the same one, and with one rank from itself.
  for (uint64_t i : {uint64_t(0), elements - 1}) {
    double fromL = loadElement(arena.base() + elements * 8, DType::F64, i);
    double fromR = loadElement(arena.base() + 2 * elements * 8, DType::F64, i);
    harness.check(fromL == (position + positions - 1) % positions * 1000.0 + double(i % 17), test,
                  cat("from the left: ", fromL));
    harness.check(fromR == (position + 1) % positions * 1000.0 + double(i % 17), test,
                  cat("from the right: ", fromR));
  }
}

// Returns when the last element of its buffer is no longer -1, or in vain after 20 s. It
// looks at a buffer in flight, which no real kernel does: that is the point.
void waitForTransfer(void *const *buffers) {
  const volatile float *last = static_cast<const float *>(buffers[0]);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (*last == -1 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Overlap is real: a kernel that only ends once the collective beside it has ended.
void runOverlap(Harness &harness, World &world, uint32_t ranks) {
  constexpr uint64_t elements = 1'000'000;
  Case test{{{ranks}, {}}, {0}, Opcode::AllReduce};
  BlobBuilder blob("overlap");
  blob.addAxis("data", ranks);
  uint32_t group = blob.addGroup({0});
  uint32_t in = blob.addView(0, elements, DType::F32);
  uint32_t out = blob.addView(elements * 4, elements, DType::F32);
  uint32_t last = blob.addView(elements * 8 - 4, 1, DType::F32);
  uint32_t step = blob.addView(elements * 8, 1, DType::I64);
  blob.header().arenaBytes = elements * 8 + 64;
  blob.header().numKernels = 1;
  blob.addInstr({.op = Opcode::AxisIndex, .event = 0, .a = group, .operands = {step}, .params = {1}});
  blob.addInstr({.op = Opcode::Wait, .stream = 1, .params = {0}});
  blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = 1, .a = group, .operands = {in, out}});
  blob.addInstr({.op = Opcode::Launch, .a = 0, .operands = {last}});
  blob.addInstr({.op = Opcode::Wait, .params = {1}});
  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  uint32_t position = program.positionOfRank(uint32_t(world.rank()));
  Arena arena(program.header().arenaBytes);
  Fabric fabric(program, position, arena, harness.localComm());
  const shoal_rt_kernel kernels[] = {waitForTransfer};
  Executor executor(program, position, kernels, arena.base(), fabric, world.crowded(),
                    world.beacon());
  for (int round = 0; round < 3; ++round) {
    float *buffer = reinterpret_cast<float *>(arena.base());
    std::fill(buffer, buffer + elements, 2.0f);
    std::fill(buffer + elements, buffer + 2 * elements, -1.0f);
    auto begin = std::chrono::steady_clock::now();
    executor.step([](uint32_t) {});
    harness.check(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20), test,
                  "a transfer did not go on beside a kernel");
    harness.check(buffer[2 * elements - 1] == 2.0f * float(ranks), test, "wrong sum");
  }
}

// A NaN must survive every reduction.
void runNan(Harness &harness, World &world, uint32_t ranks) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min})
    for (DType type : {DType::F32, DType::F64, DType::BF16}) {
      Case test{{{ranks}, {}}, {0}, Opcode::AllReduce, reduction, type};
      BlobBuilder blob("nan");
      blob.addAxis("data", ranks);
      uint32_t group = blob.addGroup({0}), view = blob.addView(0, 3, type);
      blob.header().arenaBytes = 64;
      blob.addInstr({.op = Opcode::AllReduce, .a = group, .b = uint32_t(reduction),
                     .operands = {view, view}});
      std::vector<unsigned char> bytes = blob.finish();
      Program program(bytes.data(), bytes.size());
      uint32_t position = program.positionOfRank(uint32_t(world.rank()));
      Arena arena(64);
      Fabric fabric(program, position, arena, harness.localComm());
      Executor executor(program, position, nullptr, arena.base(), fabric, world.crowded(),
                        world.beacon());
      for (uint64_t i = 0; i < 3; ++i)
        storeElement(arena.base(), type, i, i % ranks == position ? NAN : 1.0);
      executor.step([](uint32_t) {});
      for (uint64_t i = 0; i < 3; ++i)
        harness.check(std::isnan(loadElement(arena.base(), type, i)), test, "a NaN was lost");
    }
}

// Replicas must stay replicas: an all-reduce gives every rank the same bits, for values
// whose sum depends on the order, at sizes on both sides of an algorithm's switch.
void runSameBits(Harness &harness, World &world, uint32_t ranks) {
  for (uint64_t elements : {1, 7, 1000, 300'000}) {
    Case test{{{ranks}, {}}, {0}, Opcode::AllReduce};
    BlobBuilder blob("bits");
    blob.addAxis("data", ranks);
    uint32_t group = blob.addGroup({0});
    uint32_t sum = blob.addView(0, elements, DType::F32);
    uint32_t all = blob.addView(elements * 4, elements * ranks, DType::F32);
    blob.header().arenaBytes = elements * 4 * (ranks + 1);
    blob.addInstr({.op = Opcode::AllReduce, .a = group, .operands = {sum, sum}});
    blob.addInstr({.op = Opcode::AllGather, .a = group, .operands = {sum, all}});
    std::vector<unsigned char> bytes = blob.finish();
    Program program(bytes.data(), bytes.size());
    uint32_t position = program.positionOfRank(uint32_t(world.rank()));
    Arena arena(program.header().arenaBytes);
    Fabric fabric(program, position, arena, harness.localComm());
    Executor executor(program, position, nullptr, arena.base(), fabric, world.crowded(),
                      world.beacon());
    for (uint64_t i = 0; i < elements; ++i)
      storeElement(arena.base(), DType::F32, i, std::sin(double(i * ranks + position)) * 1e3);
    executor.step([](uint32_t) {});
    for (uint32_t other = 0; other < ranks; ++other)
      harness.check(std::memcmp(arena.base(), arena.base() + elements * 4 * (other + 1),
                                elements * 4) == 0,
                    test, cat("bits of ", elements, " elements differ from those of rank ", other));
  }
}

// Random rows on several streams, between ranks that come late: all-reduces of all sizes, in
// place or not, that go on beside each other and beside other collectives.
void runInterleavings(Harness &harness, const Mesh &mesh,
                      const std::vector<std::vector<uint32_t>> &groups) {
  constexpr uint64_t sizes[] = {1, 17, 1000, 16'384, 100'003};
  constexpr DType types[] = {DType::F32, DType::BF16, DType::F64, DType::I64};
  for (uint32_t seed : {1u, 2u, 3u}) {
    std::minstd_rand random(seed);
    std::vector<Case> tests;
    for (int row = 0; row < 40; ++row) {
      Case test{.mesh = mesh, .group = groups[random() % groups.size()], .op = Opcode::AllReduce};
      if (random() % 4 == 0)
        test.op = random() % 2 ? Opcode::AllGather : Opcode::ReduceScatter;
      test.reduction = Reduction(random() % 3);
      test.type = types[random() % std::size(types)];
      test.stream = random() % 4;
      test.inPlace = test.op == Opcode::AllReduce && random() % 2;
      test.elements = sizes[random() % std::size(sizes)];
      tests.push_back(test);
    }
    harness.run(tests, seed);
  }
}

std::vector<Mesh> meshes(uint32_t ranks) {
  switch (ranks) {
  case 1:
    return {{{1}, {}}, {{1, 1}, {}}};
  case 2:
    return {{{2}, {}}, {{2}, {1, 0}}, {{1, 2}, {}}, {{2, 1}, {1, 0}}};
  case 3:
    return {{{3}, {}}, {{3}, {2, 0, 1}}};
  case 4:
    return {{{4}, {3, 1, 0, 2}}, {{2, 2}, {}}, {{2, 2}, {2, 0, 3, 1}}, {{2, 1, 2}, {}}};
  case 6:
    return {{{2, 3}, {}}, {{3, 2}, {5, 3, 0, 1, 4, 2}}};
  default:
    return {{{ranks}, {}}};
  }
}

void runAll(Harness &harness, World &world) {
  for (const Mesh &mesh : meshes(uint32_t(world.size()))) {
    std::vector<Case> tests;
    std::vector<std::vector<uint32_t>> groups = {{0}};
    if (mesh.sizes.size() > 1)
      groups.insert(groups.end(), {{1}, {0, 1}, {1, 0}});
    for (const std::vector<uint32_t> &group : groups) {
      uint32_t ranks = 1;
      for (uint32_t axis : group)
        ranks *= mesh.sizes[axis];
      for (uint32_t stream : {0u, 1u, 2u}) {
        for (Opcode op : {Opcode::AllReduce, Opcode::ReduceScatter})
          for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min})
            for (DType type : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64,
                               DType::I1})
              if (type != DType::I1 || reduction != Reduction::Sum)
                tests.push_back({mesh, group, op, reduction, type, stream});
        tests.push_back({.mesh = mesh, .group = group, .op = Opcode::AllReduce, .stream = stream,
                     .inPlace = true});
        tests.push_back({.mesh = mesh, .group = group, .op = Opcode::AllReduce, .stream = stream,
                     .elements = 30'001});
        for (DType type : {DType::F32, DType::BF16, DType::I64, DType::I1}) {
          for (Opcode op : {Opcode::AllGather, Opcode::AllToAll})
            tests.push_back({.mesh = mesh, .group = group, .op = op, .type = type, .stream = stream});
          for (uint32_t root = 0; root < ranks; ++root)
            for (Opcode op : {Opcode::Broadcast, Opcode::Scatter, Opcode::Gather})
              tests.push_back({.mesh = mesh, .group = group, .op = op, .type = type,
                           .stream = stream, .root = root});
        }
      }
    }
    tests.push_back({.mesh = mesh, .group = groups.back(), .op = Opcode::Permute});
    harness.run(tests);
    runInterleavings(harness, mesh, groups);
    for (uint32_t stream : {0u, 1u})
      runExchange(harness, world, mesh, stream);
  }
  runNan(harness, world, uint32_t(world.size()));
  runSameBits(harness, world, uint32_t(world.size()));
  runOverlap(harness, world, uint32_t(world.size()));
}

} // namespace

int main(int argc, char **argv) {
  World world(&argc, &argv);
  std::string mode = argc == 2 ? argv[1] : "";
  if (mode != "windows" && mode != "mpi") {
    std::fprintf(stderr, "usage: mpirun -n N collectives windows|mpi\n");
    return 2;
  }
  Harness harness(world, mode == "mpi" ? LocalComm::Mpi : LocalComm::Windows);
  try {
    runAll(harness, world);
  } catch (const Error &error) {
    world.abort(error);
  }
  std::optional<Error> failed;
  if (harness.failures() != 0)
    failed = Error(kExitWorkFailed, cat(harness.failures(), " checks failed"));
  int code = world.agree(failed);
  if (code == 0 && world.rank() == 0)
    std::printf("%zu cases on %d ranks agree\n", harness.cases(), world.size());
  return code;
}
