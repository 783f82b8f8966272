// The agreement between shards and index.
#include "core/checkpoint_writer.h"
#include "core/box_cover.h"
#include "core/error.h"
#include "core/file.h"

#include <sstream>

namespace shoal::rt {
namespace {

// Whatever is wrong with a file of ours in the folder we made is no fault of the command line.
template <typename Part> auto asWork(Part part) {
  try {
    return part();
  } catch (const Error &error) {
    throw Error(kExitWorkFailed, error.what());
  }
}

} // namespace

CheckpointWriter::CheckpointWriter(const World &world, const Program &program, uint32_t position,
                                   const std::string &folder, uint64_t begin, std::optional<uint64_t> keep)
    : world_(world), program_(program), keep_(keep), shares_(shareOut(program)), shard_(program, shares_, position) {
  if (world.rank() != 0)
    return;
  // What could be written and not be read is told before the first step.
  for (const auto &[name, tensor] : indexTensors(program_, shares_))
    if (std::optional<std::string> cost = findCoverCost(tensor))
      badInput("--save: tensor '", name, "': ", *cost);
  folder_ = std::make_unique<CheckpointFolder>(folder, begin);
}

// `files` are the ranks' sizes and checksums.
SavedCheckpoint CheckpointWriter::writeIndex(CheckpointIndex head, const std::vector<std::string> &files,
                                             const std::string &folder) const {
  SavedCheckpoint saved;
  for (uint32_t position = 0; position < program_.numPositions(); ++position) {
    IndexFile file;
    std::istringstream(files[program_.deviceIds()[position]]) >> file.bytes >> file.crc;
    if (file.bytes != 0)
      head.files[shardName(program_, position)] = file;
    saved.bytes += file.bytes;
  }
  head.tensors = indexTensors(program_, shares_);
  std::string text = toText(head);
  OutputFile index(cat(folder, "/", kIndexName));
  index.append(text);
  index.commit();
  saved.bytes += text.size();
  return saved;
}

std::optional<SavedCheckpoint> CheckpointWriter::save(CheckpointIndex head, const char *arena,
                                                      const std::function<void(double)> &tell) {
  uint64_t step = head.position.step;
  std::string partial; // empty: that step is there
  world_.agreeAfter([&] {
    if (folder_ && !folder_->has(step))
      partial = folder_->begin(step);
  });
  partial = world_.broadcastText(partial);
  if (partial.empty())
    return std::nullopt;
  IndexFile mine;
  world_.agreeAfter([&] {
    world_.beacon().alone("the writing of a checkpoint");
    mine = asWork([&] { return shard_.write(partial, arena, tell); });
  });
  std::vector<std::string> files = world_.gather(cat(mine.bytes, " ", mine.crc));
  SavedCheckpoint saved;
  world_.agreeAfter([&] {
    if (!folder_)
      return;
    saved = asWork([&] { return writeIndex(std::move(head), files, partial); });
    saved.path = folder_->complete(step);
    if (keep_)
      folder_->dropOlder(*keep_);
  });
  return saved;
}

} // namespace shoal::rt
