// The index of a checkpoint: as it comes, and with the checksum that belongs to it, so that what is behind the checksum is reached.
#include "Target.h"
#include "core/checkpoint_index.h"
#include "core/crc32c.h"

#include <string>

using namespace shoal;

namespace {

void read(const std::string &text) {
  fuzz::expectOneLine([&] {
    rt::CheckpointIndex index = rt::parseCheckpointIndex(text, "index.json");
    std::string written = rt::toText(index);
    fuzz::require(rt::toText(rt::parseCheckpointIndex(written, "index.json")) == written,
                  "what is written must be read as it was");
    for (const auto &[name, tensor] : index.tensors)
      for (const rt::IndexBox &box : tensor.boxes) {
        fuzz::require(index.files.count(box.file) == 1, "a box must be in a file");
        for (size_t d = 0; d < tensor.shape.size(); ++d)
          fuzz::require(box.start[d] + box.shape[d] <= tensor.shape[d], "a box must lie in its tensor");
      }
  });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  read(text);
  std::string front = text.substr(0, text.rfind("\"index_crc32c\""));
  read(front + "\"index_crc32c\": \"" + rt::crcText(rt::crc32c(front)) + "\"\n}\n");
  return 0;
}
