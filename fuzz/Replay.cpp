// Runs a fuzz target on files and on the files of folders: the committed inputs in every build,
// and a crash that libFuzzer has written, under any compiler. With -runs=N it goes on with mutations of
// them up to N inputs, by the target's own mutator (-seed=S), not led by coverage. The input at work lies in
// the file of -artifact_prefix, for the case that it ends the process; one may take 20 seconds.
#include "Target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                                                unsigned seed);

namespace {

size_t option(std::string_view argument, std::string_view name, size_t otherwise) {
  return argument.starts_with(name) ? std::strtoull(argument.data() + name.size(), nullptr, 10) : otherwise;
}

using Bytes = std::vector<char>;

void run(const Bytes &bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
}

Bytes mutate(Bytes bytes, unsigned seed) {
  size_t size = bytes.size();
  bytes.resize(2 * size + 64);
  bytes.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t *>(bytes.data()), size, bytes.size(), seed));
  return bytes;
}

} // namespace

int main(int argc, char **argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  size_t runs = 0, seed = 1;
  std::string prefix;
  for (int i = 1; i < argc; ++i) {
    runs = option(argv[i], "-runs=", runs);
    seed = option(argv[i], "-seed=", seed);
    if (std::string_view(argv[i]).starts_with("-artifact_prefix="))
      prefix = std::strchr(argv[i], '=') + 1;
    if (argv[i][0] == '-')
      continue; // the others are libFuzzer's
    if (!fs::is_directory(argv[i])) {
      files.push_back(argv[i]);
      continue;
    }
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(argv[i]))
      if (entry.is_regular_file())
        files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> inputs;
  for (const fs::path &file : files) {
    std::fprintf(stderr, "%s\n", file.c_str());
    std::ifstream stream(file, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    run(inputs.back());
  }
  std::fprintf(stderr, "replayed %zu inputs\n", files.size());
  if (files.empty() || (runs != 0 && !LLVMFuzzerCustomMutator))
    return 1;
  std::mt19937 random(seed);
  size_t done = inputs.size();
  for (; done < runs; ++done) {
    // What changed once may change again, so that inputs also drift away from the first ones.
    Bytes bytes = inputs[random() % inputs.size()];
    for (size_t times = 1 + random() % 3; times != 0; --times)
      bytes = mutate(std::move(bytes), unsigned(random()));
    if (!prefix.empty())
      std::ofstream(prefix + "input", std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
    alarm(20);
    run(bytes);
    alarm(0);
  }
  if (runs != 0)
    std::fprintf(stderr, "stat::number_of_executed_units: %zu\n", done);
  return 0;
}
