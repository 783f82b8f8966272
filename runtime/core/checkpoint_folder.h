// The folder of --save: a folder step-000120 per checkpoint, complete or not there at all. What is being written, or
// removed, has a name that begins with a dot, until a rename; a killed run leaves nothing else behind, and the next
// save removes that. A step's folder that lacks its index came from elsewhere: the step's checkpoint takes its place.
#ifndef SHOAL_RT_CORE_CHECKPOINT_FOLDER_H
#define SHOAL_RT_CORE_CHECKPOINT_FOLDER_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::rt {

// "step-000120".
std::string stepName(uint64_t step);

// The step of a folder with such a name, if it has one.
std::optional<uint64_t> stepOfFolder(const std::string &path);

// The complete checkpoints of a folder: step to path. Empty for what is no folder.
std::map<uint64_t, std::string> completeCheckpoints(const std::string &folder);

// What --resume and shoal-ckpt are given: a checkpoint's own folder, or the newest complete one in a folder of them.
// Newer ones that lack their index are told on stderr, one line each. Exit 2 where there is none.
std::string findCheckpoint(const std::string &path);

// The folders that get a name when `path` and what is missing above it are made: from the first that is there to the
// parent of `path`. None where `path` is there.
std::vector<std::string> parentsOfNew(const std::string &path);

// Rank 0's hand on the folder. Errors of the constructor are exit 2, later ones exit 1.
class CheckpointFolder {
public:
  // Makes the folder where there is none and keeps other runs from saving there. A run that begins at `step` may not
  // save beside later checkpoints, which are of another run.
  CheckpointFolder(const std::string &path, uint64_t step);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;

  bool has(uint64_t step) const;
  // Removes what killed runs left, and makes the folder that the files of a checkpoint are written in; its path.
  std::string begin(uint64_t step);
  // All files are there and on disk: gives the checkpoint its name; its path. What has that name and is incomplete is
  // moved to a name with a dot, which is told on stderr.
  std::string complete(uint64_t step);
  // Keeps the last `keep`.
  void dropOlder(uint64_t keep);

private:
  void moveAside(uint64_t step, const std::string &path);

  struct Lock { // of the folder, while it is open
    int fd = -1;
    ~Lock();
  };

  std::string path_;
  std::string pending_; // path of what is being written
  Lock lock_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_FOLDER_H
