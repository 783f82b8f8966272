// Outputs appear complete or not at all, and a mapping notices that its file got shorter.
#include "TestSupport.h"
#include "core/file.h"

#include <csignal>
#include <filesystem>
#include <memory>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace shoal::rt {
namespace {

namespace fs = std::filesystem;
using test::ScratchFile;

// A folder of its own, so that what is left behind is seen.
struct File : testing::Test {
  std::string path(const char *name) const { return folder + "/" + name; }
  void put(const char *name, const std::string &text) { std::ofstream(path(name)) << text; }
  std::string get(const char *name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t count() const {
    return size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  test::ScratchFolder scratch;
  const std::string &folder = scratch.path();
};

TEST_F(File, AppearsOnCommit) {
  put("out", "old");
  {
    OutputFile file(path("out"));
    file.write("new!", 4, 0);
    EXPECT_EQ(get("out"), "old");
    EXPECT_EQ(count(), 1u);
    file.commit();
  }
  EXPECT_EQ(get("out"), "new!");
  EXPECT_EQ(count(), 1u);
}

TEST_F(File, KeepsTheOldOneWithoutCommit) {
  put("out", "old");
  OutputFile(path("out")).append("new");
  OutputFile(path("other")).append("new");
  EXPECT_EQ(get("out"), "old");
  EXPECT_EQ(count(), 1u);
}

TEST_F(File, ReplacesWhatALinkPointsTo) {
  put("real", "old");
  fs::create_symlink("real", path("link"));
  OutputFile file(path("link"));
  file.append("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get("real"), "new");
}

// Also the names that a file could have on the way belong to whoever took them first.
TEST_F(File, TouchesNoFileOfAnotherName) {
  std::vector<std::string> taken = {"out.partial"};
  for (int i = 0; i < 40; ++i)
    taken.push_back(".shoal-" + std::to_string(getpid()) + "-" + std::to_string(i) + ".partial");
  for (const std::string &name : taken)
    put(name.c_str(), "precious");
  OutputFile first(path("out")), second(path("out.partial"));
  first.append("first");
  second.append("second");
  second.commit();
  first.commit();
  EXPECT_EQ(get("out"), "first");
  EXPECT_EQ(get("out.partial"), "second");
  for (size_t i = 1; i < taken.size(); ++i)
    EXPECT_EQ(get(taken[i].c_str()), "precious");
  EXPECT_EQ(count(), taken.size() + 1);
}

TEST_F(File, PreparedButNotCommittedLeavesNothing) {
  put("out", "old");
  {
    OutputFile file(path("out"));
    file.append("new");
    file.prepare();
    EXPECT_EQ(get("out"), "old");
  }
  EXPECT_EQ(get("out"), "old");
  EXPECT_EQ(count(), 1u);
  OutputFile file(path("out"));
  file.append("new");
  file.prepare();
  file.commit();
  EXPECT_EQ(get("out"), "new");
  EXPECT_EQ(count(), 1u);
}

TEST_F(File, SizeLimitIsAnErrorOfTheWrite) {
  put("out", "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low{1024, before.rlim_max};
  auto handler = std::signal(SIGXFSZ, SIG_IGN); // as the runtime's main
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  std::string message;
  try {
    OutputFile file(path("out"));
    file.append(std::string(4096, 'x'));
    file.commit();
  } catch (const Error &error) {
    EXPECT_EQ(error.code, kExitWorkFailed);
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("out: write failed: File too large"), std::string::npos) << message;
  EXPECT_EQ(get("out"), "old");
  EXPECT_EQ(count(), 1u);
}

TEST_F(File, LiesInFolders) {
  fs::create_directories(folder + "/runs/step");
  fs::create_directory_symlink("runs", folder + "/link");
  for (const char *inside : {"/runs", "/runs/", "/runs/a", "/runs/step/b", "/link/step/../c", "/runs/new/deep/d"})
    for (const char *outer : {"/runs", "/runs/", "/link"})
      EXPECT_TRUE(liesIn(folder + inside, folder + outer)) << inside << " in " << outer;
  for (const char *outside : {"/runs2", "/", "/run", "/runs/../a"})
    EXPECT_FALSE(liesIn(folder + outside, folder + "/runs")) << outside;
  EXPECT_TRUE(liesIn("no-such/a", fs::current_path().string() + "/no-such"));
  EXPECT_EQ(identityOf("no-such"), identityOf(fs::current_path().string() + "/no-such"));
}

TEST_F(File, ErrorsAreOneShortLine) {
  try {
    MappedFile file(path("a\nb\x1b") + std::string(9000, 'x'));
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    std::string line = error.what();
    EXPECT_NE(line.find("a\\x0ab\\x1b"), std::string::npos) << line;
    EXPECT_NE(line.find(" ... "), std::string::npos) << line;
    EXPECT_LT(line.size(), 5000u);
  }
}

TEST_F(File, CutOffInsideOfAPage) {
  put("data", std::string(100, 'x'));
  MappedFile file(path("data"));
  file.checkWhole();
  fs::resize_file(path("data"), 50);
  try {
    file.checkWhole();
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    EXPECT_EQ(error.code, kExitWorkFailed);
    EXPECT_NE(std::string(error.what()).find("expected 100 bytes, got: 50"), std::string::npos)
        << error.what();
  }
}

// Its bytes stay where they were mapped, whatever has its name now.
TEST_F(File, ReplacedOrRemovedWhileMapped) {
  put("data", std::string(100, 'x'));
  MappedFile file(path("data"));
  put("new", "y");
  fs::rename(path("new"), path("data"));
  EXPECT_NO_THROW(file.checkWhole());
  fs::remove(path("data"));
  EXPECT_NO_THROW(file.checkWhole());
  EXPECT_EQ(std::string(file.data(), file.data() + file.size()), std::string(100, 'x'));
}

// A checkpoint of a thousand ranks has more files than a process may have open.
TEST_F(File, MappingsKeepNoDescriptors) {
  put("data", std::string(100, 'x'));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::unique_ptr<MappedFile>> files;
  try {
    for (int i = 0; i < 200; ++i)
      files.push_back(std::make_unique<MappedFile>(path("data")));
    for (const auto &file : files)
      file->checkWhole();
  } catch (const Error &error) {
    ADD_FAILURE() << "file " << files.size() << ": " << error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

using FileDeathTest = File;
TEST_F(FileDeathTest, CutOffAtAPageEndsWithOneLine) {
  put("data", std::string(3 * 4096, 'x'));
  put("other", "y");
  MappedFile file(path("data"));
  MappedFile other(path("other"));
  EXPECT_EXIT(
      {
        fs::resize_file(path("data"), 4096);
        volatile unsigned char value = file.data()[2 * 4096];
        (void)value;
      },
      testing::ExitedWithCode(kExitWorkFailed), "^error: .*data: cannot be read: the file became shorter");
}

} // namespace
} // namespace shoal::rt
