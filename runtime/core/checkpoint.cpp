// Opens a checkpoint's files when something in them is asked for.
#include "core/checkpoint.h"
#include "core/checkpoint_folder.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/program.h"

namespace shoal::rt {
namespace {

constexpr uint64_t kMaxIndexBytes = 1'000'000'000; // boxes of ten thousand ranks

} // namespace

Checkpoint::Checkpoint(const std::string &folder) : folder_(folder) {
  std::string path = pathOf(kIndexName);
  MappedFile file(path);
  if (file.size() > kMaxIndexBytes)
    badInput(path, ": an index must have at most ", kMaxIndexBytes, " bytes, got: ", file.size());
  std::string_view text(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
  index_ = parseCheckpointIndex(text, path);
  indexCrc_ = crc32c(text);
  file.checkWhole();
  if (auto step = stepOfFolder(folder); step && *step != index_.position.step)
    badInput(path, ": is of step ", index_.position.step, ", expected ", *step, " as its folder is named");
}

std::string Checkpoint::pathOf(const std::string &file) const { return cat(folder_, "/", file); }

const IndexTensor *Checkpoint::find(const std::string &name) const {
  auto at = index_.tensors.find(name);
  return at == index_.tensors.end() ? nullptr : &at->second;
}

void Checkpoint::checkFile(const std::string &name) const {
  const IndexFile &expected = index_.files.at(name);
  MappedFile file(pathOf(name));
  if (file.size() != expected.bytes)
    badInput(file.path(), ": has ", file.size(), " bytes, expected ", expected.bytes);
  Crc32c crc;
  crc.add(file.data(), size_t(file.size()));
  file.checkWhole();
  if (crc.value() != expected.crc)
    badInput(file.path(), ": is damaged: its bytes have CRC-32C ", crcText(crc.value()), ", expected ",
             crcText(expected.crc));
}

const unsigned char *Checkpoint::data(const IndexTensor &tensor, const IndexBox &box, const std::string *&path) {
  std::unique_ptr<SafetensorsFile> &file = open_[box.file];
  if (!file)
    file = std::make_unique<SafetensorsFile>(pathOf(box.file));
  const TensorEntry *entry = file->find(box.tensor);
  if (!entry)
    badInput(file->path(), ": lacks tensor '", shortened(box.tensor), "', which ", pathOf(kIndexName),
             " says is there");
  if (entry->type != tensor.type || entry->shape != box.shape)
    badInput(file->path(), ": tensor '", shortened(box.tensor), "' is ", fileTypeName(entry->type),
             shapeText(entry->shape), ", which ", pathOf(kIndexName), " says is ", fileTypeName(tensor.type), shapeText(box.shape));
  path = &file->path();
  return entry->data;
}

void Checkpoint::checkWhole() const {
  for (const auto &[name, file] : open_)
    file->checkWhole();
}

} // namespace shoal::rt
