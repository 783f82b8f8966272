// Boxes out of a rank's memory into its file.
#include "core/checkpoint_shard.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/file.h"
#include "shoal-rt/traffic.h"

namespace shoal::rt {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

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

} // namespace

std::string shardName(const Program &program, uint32_t position) {
  return cat("rank-", program.deviceIds()[position], "-of-", program.numPositions(), ".safetensors");
}

CheckpointShard::CheckpointShard(const Program &program, const std::vector<Share> &shares, uint32_t position)
    : program_(program), shares_(shares), position_(position) {
  std::vector<TensorSpec> specs;
  for (const Share &share : shares)
    for (const PlacedBox &box : share.boxes)
      if (share.writer == position) {
        DType type = program.views()[share.tensor->view].dtype;
        specs.push_back({boxName(program.str(share.tensor->name), box), fileTypeOf(type), box.shape});
        bytes_ += box.elements() * elementBytes(type);
      }
  if (!specs.empty())
    layout_.emplace(specs);
}

IndexFile CheckpointShard::write(const std::string &folder, const char *arena,
                                 const std::function<void(double)> &tell) const {
  if (!layout_)
    return {};
  SummedFile file(cat(folder, "/", shardName(program_, position_)));
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
      tell(double(done) / double(bytes_));
    }
  }
  return file.finish();
}

std::map<std::string, IndexTensor> indexTensors(const Program &program, const std::vector<Share> &shares) {
  std::map<std::string, IndexTensor> tensors;
  for (const Share &share : shares) {
    const Tensor &tensor = *share.tensor;
    std::string name(program.str(tensor.name));
    IndexTensor &entry = tensors[name];
    entry.kind = tensor.kind;
    entry.type = fileTypeOf(program.views()[tensor.view].dtype);
    entry.shape = globalShape(program.dims(tensor));
    entry.fileShape = program.fileShape(tensor);
    entry.of = program.str(tensor.of);
    for (const PlacedBox &box : share.boxes)
      entry.boxes.push_back({shardName(program, share.writer), boxName(name, box), box.start, box.shape});
  }
  for (const auto &[name, entry] : tensors)
    if (entry.kind == TensorKind::State)
      ++tensors.at(entry.of).states;
  return tensors;
}

} // namespace shoal::rt
