// Carries out a program's communication rows: one communicator per stream and group of
// mesh axes, everything non-blocking, and a count of what each call was given. All-reduces
// between ranks of one machine go through shared windows, everything else through MPI.
// Not thread-safe: the executor serializes its callers.
#ifndef SHOAL_RT_MPI_FABRIC_H
#define SHOAL_RT_MPI_FABRIC_H

#include "core/program.h"
#include "core/transport.h"
#include "mpi/local_comm.h"
#include "mpi/reduce_ops.h"
#include "mpi/window_channel.h"

#include <map>
#include <memory>
#include <vector>

#include <mpi.h>

namespace shoal::rt {

class Fabric final : public Transport {
public:
  // Collective over MPI_COMM_WORLD, whose size is that of the mesh. Communicators are
  // made in the order of the rows that first use them. Of the fabrics of one arena only
  // one may have windows.
  Fabric(const Program &program, uint32_t position, const Arena &arena, LocalComm localComm);
  ~Fabric() override;
  Fabric(const Fabric &) = delete;
  Fabric &operator=(const Fabric &) = delete;

  void start(uint32_t row) override;
  bool test(uint32_t row) override;
  void report(uint64_t steps, RankReport &to) const override;

  // Why there are no windows although some were wanted, or empty; the same on all ranks of
  // a machine, whose first one tells it.
  const std::string &windowProblem() const { return windowProblem_; }
  bool isFirstOfMachine() const { return isFirstOfMachine_; }

private:
  struct Channel { // a communicator and our place in it
    MPI_Comm comm = MPI_COMM_NULL;
    int size = 1, rank = 0;
    std::vector<int> nodeRanks; // of its ranks on this machine, when all are; else empty
    std::unique_ptr<WindowChannel> window;
  };
  using Requests = std::vector<MPI_Request>;
  struct Traffic {
    uint64_t calls = 0, bytes = 0;
  };

  Channel makeChannel(uint32_t group, uint32_t stream) const;
  void makeWindows(const Arena &arena);
  bool wantsWindow(uint32_t row) const;
  void check(uint32_t row, int status) const;
  void startCollective(uint32_t row, const Instr &instr);
  void startPeers(uint32_t row, const Instr &instr);
  void count(uint32_t row, const Channel &channel, uint64_t root, uint64_t elements,
             MPI_Datatype type);
  char *address(uint32_t view) const { return arena_ + program_.views()[view].offset; }

  const Program &program_;
  uint32_t position_;
  char *arena_;
  LocalComm localComm_;
  ReduceOps ops_;
  std::map<std::pair<uint32_t, uint32_t>, Channel> channels_; // (group or kNone, stream)
  std::vector<Channel *> channelOf_;                          // per row, null: none
  std::vector<Requests> pending_;                             // per row, of what is under way
  std::vector<Traffic> traffic_;                              // per row

  MPI_Comm node_ = MPI_COMM_NULL;
  std::unique_ptr<SharedArena> shared_;
  std::vector<bool> inWindow_; // per row
  std::string windowProblem_;
  bool isFirstOfMachine_ = false;
  uint32_t windowTests_ = 0; // in vain
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_FABRIC_H
