// One rank's file of a checkpoint, and what the index says of all of them. Which boxes a file holds, and their order,
// follow from the program alone, so any rank knows every file.
#ifndef SHOAL_RT_CORE_CHECKPOINT_SHARD_H
#define SHOAL_RT_CORE_CHECKPOINT_SHARD_H

#include "core/checkpoint_index.h"
#include "core/checkpoint_shares.h"
#include "core/safetensors.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::rt {

// "rank-0-of-4.safetensors", by the rank of MPI.
std::string shardName(const Program &program, uint32_t position);

class CheckpointShard {
public:
  CheckpointShard(const Program &program, const std::vector<Share> &shares, uint32_t position);

  // Writes the file into `folder`, in whose index the result belongs; it is on disk then. Nothing where there is
  // nothing to write. `tell` is called with the part that is done, from 0 to 1. Exit 1 when it cannot be written.
  IndexFile write(const std::string &folder, const char *arena, const std::function<void(double)> &tell) const;

private:
  const Program &program_;
  const std::vector<Share> &shares_;
  uint32_t position_;
  std::optional<SafetensorsLayout> layout_; // none: nothing to write
  uint64_t bytes_ = 0;                      // of the tensors
};

// The tensors of an index.
std::map<std::string, IndexTensor> indexTensors(const Program &program, const std::vector<Share> &shares);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_SHARD_H
