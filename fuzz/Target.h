// What the fuzz targets share: an input as a file, and the rule that bad input ends in one line.
//
// A target defines LLVMFuzzerTestOneInput. With Clang's sanitizers (SHOAL_SANITIZE) it is linked
// with libFuzzer; elsewhere with Replay.cpp, which runs files.
#ifndef SHOAL_FUZZ_TARGET_H
#define SHOAL_FUZZ_TARGET_H

#include "core/error.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace shoal::fuzz {

// The bytes as a file in memory.
class InputFile {
public:
  InputFile(const uint8_t *data, size_t size) : fd_(memfd_create("input", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, data, size) != ssize_t(size))
      std::abort();
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  ~InputFile() { close(fd_); }
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  const std::string &path() const { return path_; }

private:
  int fd_;
  std::string path_;
};

// Aborts, which a fuzzer reports, with the broken rule.
inline void require(bool holds, const char *rule) {
  if (holds)
    return;
  std::fprintf(stderr, "fuzz: %s\n", rule);
  std::abort();
}

// Runs `body`; the only way out besides its end is the runtime's error for a wrong input, which
// is one line of text.
template <typename Body> void expectOneLine(Body body) {
  try {
    body();
  } catch (const rt::Error &error) {
    require(error.code == rt::kExitBadInput, "bad input must end with exit code 2");
    require(*error.what() && !std::strchr(error.what(), '\n'), "an error must be one line");
  }
}

} // namespace shoal::fuzz

#endif // SHOAL_FUZZ_TARGET_H
