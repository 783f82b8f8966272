// Helpers of the runtime's unit tests: scratch files and folders, and errors checked by code and text.
#ifndef SHOAL_UNITTESTS_RUNTIME_TESTSUPPORT_H
#define SHOAL_UNITTESTS_RUNTIME_TESTSUPPORT_H

#include "core/error.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace shoal::rt::test {

// A file that is gone when the test ends.
class ScratchFile {
public:
  explicit ScratchFile(const std::string &bytes = "") {
    path_ = testing::TempDir() + "shoal-XXXXXX";
    close(mkstemp(path_.data()));
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~ScratchFile() { unlink(path_.c_str()); }
  const std::string &path() const { return path_; }
  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

private:
  std::string path_;
};

// A folder that is gone, with all that is in it, when the test ends.
class ScratchFolder {
public:
  ScratchFolder() {
    path_ = testing::TempDir() + "shoal-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  const std::string &path() const { return path_; }
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

// Runs `body`, which must throw Error with exit code 2 and one line that holds `part`.
template <typename Body> void expectBadInput(Body body, const std::string &part) {
  try {
    body();
    ADD_FAILURE() << "expected an error with '" << part << "'";
  } catch (const Error &error) {
    EXPECT_EQ(error.code, kExitBadInput);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

} // namespace shoal::rt::test

#endif // SHOAL_UNITTESTS_RUNTIME_TESTSUPPORT_H
