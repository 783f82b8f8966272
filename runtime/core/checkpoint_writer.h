// --save: each rank writes what it is the holder of, all agree that it is on disk, and rank 0 gives the checkpoint its
// name.
#ifndef SHOAL_RT_CORE_CHECKPOINT_WRITER_H
#define SHOAL_RT_CORE_CHECKPOINT_WRITER_H

#include "core/checkpoint_folder.h"
#include "core/checkpoint_index.h"
#include "core/checkpoint_shard.h"
#include "mpi/world.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::rt {

struct SavedCheckpoint {
  std::string path;
  uint64_t bytes = 0; // of all files
};

class CheckpointWriter {
public:
  // `begin` is the step at which this run begins, `keep` how many checkpoints stay: none means all. Rank 0 opens the
  // folder.
  CheckpointWriter(const World &world, const Program &program, uint32_t position, const std::string &folder,
                   uint64_t begin, std::optional<uint64_t> keep);

  // Collective. `head` says how far the training is; what it says of tensors and files is filled in here. On rank 0,
  // `tell` is called with the part of its own work that is done, from 0 to 1. Nothing where the folder already has that
  // step. A rank that cannot write ends the run on all of them, exit 1; older checkpoints stay.
  std::optional<SavedCheckpoint> save(CheckpointIndex head, const char *arena,
                                      const std::function<void(double)> &tell);

private:
  SavedCheckpoint writeIndex(CheckpointIndex head, const std::vector<std::string> &files,
                             const std::string &folder) const;

  const World &world_;
  const Program &program_;
  std::optional<uint64_t> keep_;
  std::vector<Share> shares_;
  CheckpointShard shard_; // this rank's
  std::unique_ptr<CheckpointFolder> folder_; // rank 0
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_WRITER_H
