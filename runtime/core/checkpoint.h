// A checkpoint that is read: its index, and the elements of its tensors out of whichever files hold them.
#ifndef SHOAL_RT_CORE_CHECKPOINT_H
#define SHOAL_RT_CORE_CHECKPOINT_H

#include "core/checkpoint_index.h"
#include "core/placed_box.h"
#include "core/safetensors.h"

#include <map>
#include <memory>
#include <string>

namespace shoal::rt {

class Checkpoint {
public:
  // `folder` has the index. Exit 2 when it is wrong.
  explicit Checkpoint(const std::string &folder);

  const std::string &path() const { return folder_; }
  const CheckpointIndex &index() const { return index_; }
  // Of its text.
  uint32_t indexCrc() const { return indexCrc_; }
  const IndexTensor *find(const std::string &name) const;

  // Reads all of a file: exit 2 when it is not there, or its size or checksum is not the index's.
  void checkFile(const std::string &name) const;

  // Calls run(elements in the file's type, offset in `target`, count, path of the file) for all that `target` and the
  // tensor's boxes share. Exit 2 when a file does not hold what the index says.
  template <typename Run> void read(const IndexTensor &tensor, const PlacedBox &target, Run run);
  // Whether files became shorter while they were read.
  void checkWhole() const;

private:
  // A box's elements in its file.
  const unsigned char *data(const IndexTensor &tensor, const IndexBox &box, const std::string *&path);
  std::string pathOf(const std::string &file) const;

  std::string folder_;
  CheckpointIndex index_;
  uint32_t indexCrc_ = 0;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;
};

template <typename Run> void Checkpoint::read(const IndexTensor &tensor, const PlacedBox &target, Run run) {
  for (const IndexBox &box : tensor.boxes) {
    const unsigned char *from = nullptr; // files that hold nothing of the target stay closed
    const std::string *path = nullptr;
    forEachCommonRun(PlacedBox::dense(box.start, box.shape), target, [&](uint64_t at, uint64_t to, uint64_t count) {
      if (!from)
        from = data(tensor, box, path);
      run(from + at * fileElementBytes(tensor.type), to, count, *path);
    });
  }
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_H
