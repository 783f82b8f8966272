// The folder of checkpoints: one is there complete or not at all, the last ones stay, and what killed runs left goes.
#include "TestSupport.h"
#include "core/checkpoint_folder.h"
#include "core/checkpoint_index.h"

#include <algorithm>
#include <filesystem>

namespace shoal::rt {
namespace {

using test::expectBadInput;
namespace fs = std::filesystem;

class CheckpointFolderTest : public testing::Test {
protected:
  void save(CheckpointFolder &folder, uint64_t step) {
    std::string partial = folder.begin(step);
    EXPECT_TRUE(completeCheckpoints(path_).count(step) == 0);
    std::ofstream(partial + "/" + kIndexName) << "{}";
    EXPECT_EQ(folder.complete(step), path_ + "/" + stepName(step));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(path_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  test::ScratchFolder scratch_;
  const std::string &path_ = scratch_.path();
};

TEST_F(CheckpointFolderTest, Names) {
  EXPECT_EQ(stepName(0), "step-000000");
  EXPECT_EQ(stepName(120), "step-000120");
  EXPECT_EQ(stepName(12345678), "step-12345678");
}

TEST_F(CheckpointFolderTest, KeepsTheLast) {
  CheckpointFolder folder(path_, 0);
  for (uint64_t step : {5, 10, 1000000, 20})
    save(folder, step);
  EXPECT_EQ(findCheckpoint(path_), path_ + "/step-1000000");
  EXPECT_EQ(findCheckpoint(path_ + "/step-000010"), path_ + "/step-000010");
  EXPECT_TRUE(folder.has(5));
  folder.dropOlder(2);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-000020", "step-1000000"}));
  EXPECT_FALSE(folder.has(5));
}

TEST_F(CheckpointFolderTest, LeftoversGoAndNothingElse) {
  for (const char *name :
       {".step-000003.tmp", ".step-000001.tmp-old", ".step-3.tmp", "notes", "step-abc", "step-000002"})
    fs::create_directories(path_ + "/" + name + "/inner");
  std::ofstream(path_ + "/.step-000003.tmp/rank-0-of-1.safetensors") << "part";
  CheckpointFolder folder(path_, 0);
  EXPECT_TRUE(completeCheckpoints(path_).empty()) << "step-000002 has no index";
  expectBadInput([&] { findCheckpoint(path_); }, "holds no complete checkpoint");
  save(folder, 4);
  EXPECT_EQ(names(), (std::vector<std::string>{".step-3.tmp", "notes", "step-000002", "step-000004", "step-abc"}));
}

TEST_F(CheckpointFolderTest, NewerOnesWithoutIndexAreTold) {
  CheckpointFolder folder(path_, 0);
  save(folder, 4);
  save(folder, 9);
  for (const char *name : {"step-000002", "step-000006", "step-000010/index.json", "step-000011"})
    fs::create_directories(path_ + "/" + name);
  testing::internal::CaptureStderr();
  EXPECT_EQ(findCheckpoint(path_), path_ + "/step-000009");
  std::string line = " has no index.json, which makes a checkpoint complete: skipped, step-000009 is taken\n";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "note: " + path_ + "/step-000010" + line + "note: " + path_ + "/step-000011" + line);
}

// It is moved and told, and gone with the next save: folders, files and links alike.
TEST_F(CheckpointFolderTest, IncompleteOnesGiveTheirNames) {
  fs::create_directories(path_ + "/step-000003/inner");
  std::ofstream(path_ + "/step-000003/rank-0-of-1.safetensors") << "part";
  std::ofstream(path_ + "/step-000004") << "file";
  fs::create_directories(path_ + "/elsewhere/kept");
  fs::create_symlink("elsewhere", path_ + "/step-000005");
  CheckpointFolder folder(path_, 0);
  for (uint64_t step : {3, 4, 5}) {
    EXPECT_FALSE(folder.has(step));
    testing::internal::CaptureStderr();
    save(folder, step);
    std::string name = stepName(step), aside = "." + name + ".tmp-incomplete";
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "note: " + path_ + "/" + name + " has no index.json, which makes a checkpoint complete: moved to " +
                  path_ + "/" + aside + ", which the next save removes\n");
    EXPECT_TRUE(folder.has(step));
    std::vector<std::string> now = names();
    EXPECT_EQ(std::count_if(now.begin(), now.end(), [](const std::string &one) { return one[0] == '.'; }), 1);
    EXPECT_EQ(now.front(), aside);
  }
  EXPECT_TRUE(fs::exists(path_ + "/.step-000005.tmp-incomplete/kept"));
  save(folder, 6);
  EXPECT_EQ(names(), (std::vector<std::string>{"elsewhere", "step-000003", "step-000004", "step-000005",
                                               "step-000006"}));
  EXPECT_TRUE(fs::exists(path_ + "/elsewhere/kept"));
}

// One that became complete meanwhile stays.
TEST_F(CheckpointFolderTest, CompleteOnesKeepTheirNames) {
  CheckpointFolder folder(path_, 0);
  folder.begin(3);
  fs::create_directories(path_ + "/step-000003");
  std::ofstream(path_ + "/step-000003/" + kIndexName) << "theirs";
  EXPECT_THROW(folder.complete(3), Error);
  EXPECT_EQ(fs::file_size(path_ + "/step-000003/" + kIndexName), 6u);
}

TEST_F(CheckpointFolderTest, WhatIsNotCompletedGoes) {
  {
    CheckpointFolder folder(path_, 0);
    folder.begin(3);
    EXPECT_EQ(names(), std::vector<std::string>{".step-000003.tmp"});
  }
  EXPECT_TRUE(names().empty());
}

// Each folder that gets a new name in it must be synced.
TEST_F(CheckpointFolderTest, ParentsOfNew) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(parentsOfNew(path_), Paths{});
  EXPECT_EQ(parentsOfNew(path_ + "/n"), Paths{path_});
  Paths three{path_, path_ + "/n", path_ + "/n/a"};
  EXPECT_EQ(parentsOfNew(path_ + "/n/a/b"), three);
  EXPECT_EQ(parentsOfNew(path_ + "/n/a/b/"), three);
  EXPECT_EQ(parentsOfNew("no-such-folder/inner"), (Paths{".", "no-such-folder"}));
  CheckpointFolder folder(path_ + "/n/a/b", 0);
  EXPECT_EQ(parentsOfNew(path_ + "/n/a/b"), Paths{});
  EXPECT_EQ(parentsOfNew(path_ + "/n/a/b/c"), Paths{path_ + "/n/a/b"});
}

TEST_F(CheckpointFolderTest, Refusals) {
  {
    CheckpointFolder folder(path_, 0);
    expectBadInput([&] { CheckpointFolder second(path_, 0); }, "another run saves its checkpoints there");
    save(folder, 8);
  }
  expectBadInput([&] { CheckpointFolder folder(path_, 7); },
                 "holds a checkpoint of step 8, and this run begins at step 7; resume from it");
  CheckpointFolder folder(path_, 8);
  std::ofstream(path_ + "/file") << "x";
  expectBadInput([&] { CheckpointFolder inFile(path_ + "/file", 0); }, "/file: cannot be ");
  expectBadInput([&] { findCheckpoint(path_ + "/file"); }, "is no folder");
  expectBadInput([&] { findCheckpoint(path_ + "/none"); }, "cannot be opened: No such file or directory");
}

} // namespace
} // namespace shoal::rt
