// Times all-reduces between the ranks of one machine as compiled programs make them, in
// shared windows and over MPI, beside MPI's own blocking call and beside memcpy.
//
//   shoal-run -n 2 all-reduce BYTES ROUNDS
//
// Prints one line a round, all sides measured in turns within it: microseconds of
//   windows mpi MPI_Allreduce memcpy
// of a buffer of BYTES on each rank: for the all-reduces the slowest rank's, for memcpy
// that of rank 0 while the others rest.
#include "core/arena.h"
#include "core/executor.h"
#include "mpi/fabric.h"
#include "mpi/world.h"
#include "shoal-rt/blob_builder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <mpi.h>

using namespace shoal::rt;

namespace {

double now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// All-reduces of f32 on a stream beside the computation, each waited for: one step's worth.
Program makeProgram(uint32_t ranks, uint64_t bytes, uint32_t times) {
  BlobBuilder blob("all_reduce");
  blob.addAxis("data", ranks);
  uint32_t group = blob.addGroup({0});
  uint64_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  uint32_t in = blob.addView(0, bytes / 4, DType::F32);
  uint32_t out = blob.addView(room, bytes / 4, DType::F32);
  blob.header().arenaBytes = 2 * room;
  for (uint32_t i = 0; i < times; ++i) {
    blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = i, .a = group, .operands = {in, out}});
    blob.addInstr({.op = Opcode::Wait, .params = {i}});
  }
  std::vector<unsigned char> blobBytes = blob.finish();
  return Program(blobBytes.data(), blobBytes.size());
}

// A program with its memory, ready to run under one way of reducing.
class Side {
public:
  Side(World &world, uint64_t bytes, uint32_t times, LocalComm localComm)
      : program_(makeProgram(uint32_t(world.size()), bytes, times)),
        arena_(program_.header().arenaBytes),
        fabric_(program_, program_.positionOfRank(uint32_t(world.rank())), arena_, localComm),
        executor_(program_, program_.positionOfRank(uint32_t(world.rank())), nullptr, arena_.base(),
                  fabric_, world.crowded(), world.beacon()),
        times_(times) {
    if (!fabric_.windowProblem().empty())
      workFailed("no windows: ", fabric_.windowProblem());
    std::memset(arena_.base(), 0, arena_.size());
  }
  // Microseconds of one all-reduce.
  double run() {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now();
    executor_.step([](uint32_t) {});
    return (now() - begin) / times_;
  }

private:
  Program program_;
  Arena arena_;
  Fabric fabric_;
  Executor executor_;
  uint32_t times_;
};

double slowest(double mine) {
  double worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

void measure(World &world, uint64_t bytes, int rounds) {
  uint32_t times = uint32_t(std::clamp<uint64_t>((uint64_t(8) << 20) / bytes, 1, 1000));
  Side windows(world, bytes, times, LocalComm::Windows), mpi(world, bytes, times, LocalComm::Mpi);
  std::vector<float> source(bytes / 4, 1.0f), target(bytes / 4); // memory as anybody gets it
  float *from = source.data(), *to = target.data();
  for (int round = -1; round < rounds; ++round) { // the first is not counted
    double ours = slowest(windows.run()), overMpi = slowest(mpi.run());
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now();
    for (uint32_t i = 0; i < times; ++i)
      MPI_Allreduce(from, to, int(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double blocking = slowest((now() - begin) / times);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = now();
    for (uint32_t i = 0; world.rank() == 0 && i < times; ++i) {
      std::memcpy(to, from, bytes);
      asm volatile("" : : "r"(to) : "memory"); // every copy is made
    }
    double copy = (now() - begin) / times;
    MPI_Barrier(MPI_COMM_WORLD);
    if (round >= 0 && world.rank() == 0)
      std::printf("%.3f %.3f %.3f %.3f\n", ours, overMpi, blocking, copy);
  }
}

} // namespace

int main(int argc, char **argv) {
  World world(&argc, &argv);
  uint64_t bytes = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (bytes < 4 || bytes % 4 != 0 || bytes >> 31 != 0 || rounds < 1 || world.size() < 2) {
    if (world.rank() == 0)
      std::fprintf(stderr, "usage: shoal-run -n 2 all-reduce BYTES ROUNDS, with BYTES of whole f32\n");
    return 2;
  }
  try {
    measure(world, bytes, rounds);
  } catch (const Error &error) {
    world.abort(error);
  }
}
