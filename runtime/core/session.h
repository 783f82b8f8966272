// One program at work on this rank: its data, its communication and its executor. Training and the
// evaluation between its steps each have one, on one arena.
#ifndef SHOAL_RT_CORE_SESSION_H
#define SHOAL_RT_CORE_SESSION_H

#include "core/arena.h"
#include "core/dataset.h"
#include "core/executor.h"
#include "mpi/fabric.h"

namespace shoal::rt {

class Session {
public:
  // Opens and checks the data: `files` maps each input of the program to its file, as `flag` gave them.
  Session(const Program &program, const shoal_rt_kernel *kernels, uint32_t position,
          const std::map<std::string, std::string> &files, const char *flag)
      : program_(program), kernels_(kernels), position_(position), data_(program, position, files, flag) {}
  // Without data: whoever steps writes the inputs.
  Session(const Program &program, const shoal_rt_kernel *kernels, uint32_t position)
      : program_(program), kernels_(kernels), position_(position), data_(program) {}

  // The memory that the program works on, before connect() and fill().
  void setArena(const Arena &arena) { arena_ = &arena; }
  // Collective: communicators, and windows if `localComm` wants them.
  void connect(LocalComm localComm) {
    fabric_ = std::make_unique<Fabric>(program_, position_, *arena_, localComm);
  }
  // Rows to calls.
  void resolve(bool crowded, Beacon &beacon) {
    executor_ = std::make_unique<Executor>(program_, position_, kernels_, arena_->base(), *fabric_, crowded,
                                           beacon);
  }

  const Program &program() const { return program_; }
  uint32_t position() const { return position_; }
  Dataset &data() { return data_; }
  const Dataset &data() const { return data_; }
  Fabric &fabric() { return *fabric_; }
  Executor &executor() { return *executor_; }

  // The inputs of a batch into the arena; see Dataset.
  uint64_t fill(uint64_t epoch, uint64_t batch) { return data_.fill(epoch, batch, arena_->base()); }
  const char *address(uint32_t view) const { return arena_->base() + program_.views()[view].offset; }

  // No step after this; what is left are communicators. Executors show where the rank is until they go.
  void endSteps() { executor_.reset(); }

private:
  const Program &program_;
  const shoal_rt_kernel *kernels_;
  uint32_t position_;
  const Arena *arena_ = nullptr;
  Dataset data_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Executor> executor_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_SESSION_H
