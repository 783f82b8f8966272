// The index of a model in several files, beside two of them.
#include "Target.h"
#include "core/parameter_files.h"

#include <filesystem>
#include <fstream>

using namespace shoal;

namespace {

void write(const std::string &path, const void *bytes, size_t size) {
  std::ofstream(path, std::ios::binary).write(static_cast<const char *>(bytes), std::streamsize(size));
}

// Gone when the target ends.
struct Folder {
  std::string path = std::filesystem::temp_directory_path().string() + "/shoal-index-XXXXXX";
  Folder() {
    if (!mkdtemp(path.data()))
      std::abort();
    rt::SafetensorsLayout first({{"a", rt::FileType::U8, {1}}, {"b", rt::FileType::U8, {2}}}),
        second({{"c", rt::FileType::U8, {3}}});
    std::string data = first.header() + "abb";
    write(path + "/1.safetensors", data.data(), data.size());
    data = second.header() + "ccc";
    write(path + "/2.safetensors", data.data(), data.size());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  std::string path = folder.path + "/index.json";
  write(path, data, size);
  fuzz::expectOneLine([&] {
    rt::ParameterFiles files(path);
    fuzz::require(files.tensors().size() <= 3, "there are three tensors");
    for (const auto &[name, found] : files.tensors())
      fuzz::require(files.find(name) == &found && *found.tensor->data == name[0],
                    "a tensor must be found by its name");
    files.find("transformer." + std::string(reinterpret_cast<const char *>(data), size));
  });
  return 0;
}
