// The processes of a run: who we are, how an error ends all of us, and how rank 0 gets
// what others hold. Callers see no MPI.
#ifndef SHOAL_RT_MPI_WORLD_H
#define SHOAL_RT_MPI_WORLD_H

#include "core/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::rt {

// MPI's own words for a status that is not MPI_SUCCESS.
std::string mpiErrorText(int status);

class World {
public:
  World(int *argc, char ***argv); // MPI_Init_thread, serialized
  ~World();                       // MPI_Finalize
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Whether a rank has fewer cores than its two threads, so that polling takes time from
  // computing.
  bool crowded() const { return crowded_; }

  // Collective. With an error on any rank, prints it once (per distinct line) on rank 0
  // and returns the exit code for all; else 0.
  int agree(const std::optional<Error> &error) const;

  // Prints the line and stops every rank with its exit code.
  [[noreturn]] void abort(const Error &error) const;

  // Collective. The texts of all ranks, by rank, on rank 0; empty elsewhere.
  std::vector<std::string> gather(const std::string &text) const;

  // Bytes of any number from another rank to rank 0, which asks for as many.
  void sendToFirst(const char *data, uint64_t bytes) const;
  void receiveFrom(int rank, char *data, uint64_t bytes) const;

private:
  void require(const char *what, int status) const;

  int rank_ = 0, size_ = 1;
  bool crowded_ = false;
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_WORLD_H
