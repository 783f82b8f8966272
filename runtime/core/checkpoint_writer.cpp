// Shards, index, and the agreement between the two.
#include "core/checkpoint_writer.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/file.h"
#include "core/options.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

namespace shoal::rt {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr size_t kMostPath = 4096;

std::string shardName(uint32_t rank, uint32_t ranks) { return cat("rank-", rank, "-of-", ranks, ".safetensors"); }

// "w[0:4, 8:16]": no two boxes of a checkpoint have one name.
std::string boxName(std::string_view tensor, const PlacedBox &box) {
  std::string text(tensor);
  text += '[';
  for (size_t d = 0; d < box.start.size(); ++d)
    text += cat(d ? ", " : "", box.start[d], ":", box.start[d] + box.shape[d]);
  return text + ']';
}

// Bytes one after the other, summed as they go.
class SummedFile {
public:
  explicit SummedFile(const std::string &path) : file_(path) {}

  void add(const char *bytes, uint64_t size) {
    if (chunk_.size() + size > kChunkBytes)
      flush();
    if (size > kChunkBytes)
      return put(bytes, size);
    chunk_.append(bytes, size);
  }
  // All of it is on disk, and has its name.
  IndexFile finish() {
    flush();
    file_.commit();
    return {end_, crc_.value()};
  }

private:
  void flush() {
    put(chunk_.data(), chunk_.size());
    chunk_.clear();
  }
  void put(const char *bytes, uint64_t size) {
    crc_.add(bytes, size);
    file_.write(bytes, size, end_);
    end_ += size;
  }

  OutputFile file_;
  Crc32c crc_;
  std::string chunk_;
  uint64_t end_ = 0;
};

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
    : world_(world), program_(program), position_(position), keep_(keep), shares_(shareOut(program)) {
  if (world.rank() == 0)
    folder_ = std::make_unique<CheckpointFolder>(folder, begin);
  std::vector<TensorSpec> specs;
  for (const Share &share : shares_)
    for (const PlacedBox &box : share.boxes)
      if (share.writer == position) {
        DType type = program.views()[share.tensor->view].dtype;
        specs.push_back({boxName(program.str(share.tensor->name), box), fileTypeOf(type), box.shape});
        shardBytes_ += box.elements() * elementBytes(type);
      }
  if (!specs.empty())
    layout_.emplace(specs);
}

IndexFile CheckpointWriter::writeShard(const std::string &folder, const char *arena,
                                       const std::function<void(double)> &tell) const {
  if (!layout_)
    return {};
  SummedFile file(cat(folder, "/", shardName(uint32_t(world_.rank()), program_.numPositions())));
  file.add(layout_->header().data(), layout_->header().size());
  uint64_t done = 0;
  for (const Share &share : shares_) {
    if (share.writer != position_)
      continue;
    const View &view = program_.views()[share.tensor->view];
    uint64_t size = elementBytes(view.dtype);
    for (const PlacedBox &box : share.boxes) {
      // Runs of its own box in the order of the file.
      forEachCommonRun(PlacedBox::dense(box.start, box.shape), box, [&](uint64_t, uint64_t at, uint64_t count) {
        file.add(arena + view.offset + at * size, count * size);
      });
      done += box.elements() * size;
      tell(double(done) / double(shardBytes_));
    }
  }
  return file.finish();
}

SavedCheckpoint CheckpointWriter::writeIndex(CheckpointIndex head, const std::vector<std::string> &files,
                                             const std::string &folder) {
  SavedCheckpoint saved;
  for (uint32_t rank = 0; rank < files.size(); ++rank) {
    IndexFile file;
    std::istringstream(files[rank]) >> file.bytes >> file.crc;
    if (file.bytes != 0)
      head.files[shardName(rank, program_.numPositions())] = file;
    saved.bytes += file.bytes;
  }
  for (const Share &share : shares_) {
    const Tensor &tensor = *share.tensor;
    std::string name(program_.str(tensor.name));
    IndexTensor &entry = head.tensors[name];
    entry.kind = tensor.kind;
    entry.type = fileTypeOf(program_.views()[tensor.view].dtype);
    entry.shape = globalShape(program_.dims(tensor));
    entry.fileShape = program_.fileShape(tensor);
    for (const PlacedBox &box : share.boxes)
      entry.boxes.push_back({shardName(program_.deviceIds()[share.writer], program_.numPositions()),
                             boxName(name, box), box.start, box.shape});
  }
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
  std::array<char, kMostPath> path{}; // empty: that step is there
  world_.agreeAfter([&] {
    if (!folder_ || folder_->has(step))
      return;
    std::string partial = folder_->begin(step);
    if (partial.size() >= path.size())
      workFailed(partial, ": a path must have at most ", path.size() - 1, " bytes, got: ", partial.size());
    std::memcpy(path.data(), partial.data(), partial.size());
  });
  world_.broadcast(path.data(), path.size());
  std::string partial(path.data());
  if (partial.empty())
    return std::nullopt;
  IndexFile mine;
  world_.agreeAfter([&] {
    world_.beacon().alone("the writing of a checkpoint");
    mine = asWork([&] { return writeShard(partial, arena, tell); });
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
