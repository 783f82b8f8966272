// Carries out a program's communication rows with MPI: one communicator per stream and
// group of mesh axes, everything non-blocking, and a count of what each call was given.
// Not thread-safe: the executor serializes its callers.
#ifndef SHOAL_RT_MPI_FABRIC_H
#define SHOAL_RT_MPI_FABRIC_H

#include "core/program.h"
#include "mpi/reduce_ops.h"
#include "shoal-rt/report.h"

#include <map>
#include <vector>

#include <mpi.h>

namespace shoal::rt {

class Fabric {
public:
  // Collective over MPI_COMM_WORLD, whose size is that of the mesh. Communicators are
  // made in the order of the rows that first use them.
  Fabric(const Program &program, uint32_t position, char *arena);
  ~Fabric();
  Fabric(const Fabric &) = delete;
  Fabric &operator=(const Fabric &) = delete;

  using Pending = std::vector<MPI_Request>;

  // Starts a row; it is complete once test() was true. Throws exit 1 with the row's name.
  void start(uint32_t row, Pending &pending);
  bool test(uint32_t row, Pending &pending);

  // This rank's traffic per step. Throws exit 1 when counts are no multiple of `steps`.
  void report(uint64_t steps, RankReport &to) const;

private:
  struct Channel { // a communicator and our place in it
    MPI_Comm comm = MPI_COMM_NULL;
    int size = 1, rank = 0;
  };
  struct Traffic {
    uint64_t calls = 0, bytes = 0;
  };

  Channel makeChannel(uint32_t group, uint32_t stream) const;
  void check(uint32_t row, int status) const;
  void startCollective(uint32_t row, const Instr &instr, Pending &pending);
  void startPeers(uint32_t row, const Instr &instr, Pending &pending);
  void count(uint32_t row, const Channel &channel, uint64_t root, uint64_t elements,
             MPI_Datatype type);
  char *address(uint32_t view) const { return arena_ + program_.views()[view].offset; }

  const Program &program_;
  uint32_t position_;
  char *arena_;
  ReduceOps ops_;
  std::map<std::pair<uint32_t, uint32_t>, Channel> channels_; // (group or kNone, stream)
  std::vector<Channel *> channelOf_;                          // per row, null: none
  std::vector<Traffic> traffic_;                              // per row
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_FABRIC_H
