// The processes of a run: who we are, how an error ends all of us, and how rank 0 gets
// what others hold. Callers see no MPI.
#ifndef SHOAL_RT_MPI_WORLD_H
#define SHOAL_RT_MPI_WORLD_H

#include "core/error.h"
#include "core/watchdog.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::rt {

// MPI's own words for a status that is not MPI_SUCCESS.
std::string mpiErrorText(int status);

// A fault that all ranks know of and rank 0 has told: what is left is to end with its code.
struct ToldError {
  int code;
};

class World {
public:
  // MPI_Init_thread, serialized. A rank that waits longer than `timeout` seconds for others ends
  // the job; 0: never.
  World(int *argc, char ***argv, double timeout = kDefaultTimeout);
  ~World(); // MPI_Finalize
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Whether a rank has fewer cores than its two threads, so that polling takes time from
  // computing.
  bool crowded() const { return crowded_; }
  // Where this rank says what it does.
  Beacon &beacon() const { return *beacon_; }
  // What was wrong with the launcher's progress board, for the first agreement.
  const std::optional<Error> &startError() const { return startError_; }
  // What the board says at the end.
  void endsWith(int exitCode) { exitCode_ = exitCode; }

  // Collective. With an error on any rank, prints it once (per distinct line) on rank 0
  // and returns the exit code for all; else 0.
  int agree(const std::optional<Error> &error) const;

  // Collective. Runs `part` on each rank; when it throws on one, agrees on the error and throws ToldError on all.
  template <typename Part> void agreeAfter(Part part) const {
    std::optional<Error> failed;
    try {
      part();
    } catch (const Error &caught) {
      failed = caught;
    } catch (const std::exception &caught) {
      failed = Error(kExitWorkFailed, caught.what());
    }
    if (int code = agree(failed))
      throw ToldError{code};
  }

  // Prints the line, unless another rank has failed before, and stops every rank with its exit
  // code.
  [[noreturn]] void abort(const Error &error) const;

  // Collective. The texts of all ranks, by rank, on rank 0; empty elsewhere.
  std::vector<std::string> gather(const std::string &text) const;

  // Bytes of any number from another rank to rank 0, which asks for as many.
  void sendToFirst(const char *data, uint64_t bytes) const;
  void receiveFrom(int rank, char *data, uint64_t bytes) const;
  // Collective. At most 2^30 bytes of rank 0 to all.
  void broadcast(char *data, uint64_t bytes) const;
  // Collective. The text that rank 0 gives.
  std::string broadcastText(std::string text) const;

  // Collective. Per place the largest number that a rank has there; all have as many.
  std::vector<uint64_t> maxima(std::vector<uint64_t> numbers) const;

  // Collective. What this rank's steady clock reads, in nanoseconds, at a moment that is the same
  // for all.
  int64_t commonMoment() const;

private:
  void require(const char *what, int status) const;
  void joinLauncher(double timeout);
  void shareBoard(void *nodeCommunicator, double timeout);
  void guard(uint32_t rank, double timeout);
  [[noreturn]] void endAll(int code) const;

  int rank_ = 0, size_ = 1, exitCode_ = 0;
  bool crowded_ = false;
  std::atomic<bool> canAbort_ = false; // between MPI_Init and MPI_Finalize
  std::optional<Error> startError_;
  Board board_;
  std::unique_ptr<Beacon> beacon_;
  std::unique_ptr<Watchdog> watchdog_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_WORLD_H
