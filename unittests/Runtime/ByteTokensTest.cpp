// Texts to samples and back: every byte has the label that follows it, and nothing of a text is lost.
#include "TestSupport.h"

#include "core/byte_tokens.h"
#include "core/npy.h"

#include <cstring>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>

namespace shoal::rt {
namespace {

namespace fs = std::filesystem;

using test::expectBadInput;
using test::ScratchFile;
using test::ScratchFolder;

template <typename T> std::vector<T> elementsOf(const std::string &path, FileType type) {
  NpyFile file(path);
  EXPECT_EQ(file.type(), type);
  std::vector<T> elements(file.shape()[0] * file.shape()[1]);
  std::memcpy(elements.data(), file.data(), elements.size() * sizeof(T));
  return elements;
}

// All samples of a split as text, '~' where a label does not count.
std::string idsOf(const SampleFiles &files) {
  std::vector<unsigned char> ids = elementsOf<unsigned char>(files.ids, FileType::U8);
  return {ids.begin(), ids.end()};
}
std::string labelsOf(const SampleFiles &files) {
  std::string text;
  for (int16_t label : elementsOf<int16_t>(files.labels, FileType::I16))
    text += label == kIgnoredLabel ? '~' : char(label);
  return text;
}

TEST(ByteTokens, LabelsAreTheNextTokens) {
  ScratchFile a("abcde"), empty, b("fghij\xff");
  ScratchFolder folder;
  ByteSamplesSummary summary = writeByteSamples({{a.path(), empty.path(), b.path()}, 4, 0, folder / "data"});
  EXPECT_EQ(summary.files, 3u);
  EXPECT_EQ(summary.bytes, 11u);
  EXPECT_EQ(summary.training.samples, 3u);
  EXPECT_EQ(summary.validation.samples, 0u);
  EXPECT_EQ(NpyFile(summary.training.ids).shape(), (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(idsOf(summary.training), "abcdefghij\xff\n");
  EXPECT_EQ(labelsOf(summary.training), "bcdefghij\xff~~");
  EXPECT_FALSE(fs::exists(summary.validation.ids));
  // Where samples and tokens with a label come out even, no label is left out.
  ScratchFile even("abcdefghi");
  summary = writeByteSamples({{even.path()}, 4, 0, folder / "data"});
  EXPECT_EQ(idsOf(summary.training), "abcdefgh");
  EXPECT_EQ(labelsOf(summary.training), "bcdefghi");
}

TEST(ByteTokens, EachKthSampleIsForValidation) {
  ScratchFile text("aabbccddeeffgg");
  ScratchFolder folder;
  ByteSamplesSummary summary = writeByteSamples({{text.path()}, 2, 3, folder / "data"});
  EXPECT_EQ(idsOf(summary.training), "aabbddeegg");
  EXPECT_EQ(idsOf(summary.validation), "ccff");
  EXPECT_EQ(labelsOf(summary.validation), "cdfg");
  EXPECT_EQ(summary.training.samples + summary.validation.samples, 7u);
  // The same samples as without validation.
  EXPECT_EQ(labelsOf(summary.training), "abbcdeefg~");
}

TEST(ByteTokens, AFileOfTwoNamesIsTakenOnce) {
  ScratchFolder folder;
  ScratchFile text("abcdefgh");
  fs::create_symlink(text.path(), folder / "link");
  ByteSamplesSummary summary = writeByteSamples({{text.path(), folder / "link"}, 4, 0, folder / "data"});
  EXPECT_EQ(summary.bytes, 8u);
  ASSERT_EQ(summary.notes.size(), 1u);
  EXPECT_EQ(summary.notes[0], (folder / "link") + " is " + text.path() + " and is taken once");
}

TEST(ByteTokens, TextsThatMakeNoSamples) {
  ScratchFolder folder;
  ScratchFile empty, text("abcde");
  auto refused = [&](std::vector<std::string> texts, uint64_t window, uint64_t every, const std::string &part) {
    expectBadInput([&] { writeByteSamples({texts, window, every, folder / "data"}); }, part);
    EXPECT_FALSE(fs::exists(folder / "data"));
  };
  refused({empty.path()}, 4, 0, "samples of 4 tokens and their labels need at least 5 bytes of text, got: 0");
  refused({text.path()}, 5, 0, "samples of 5 tokens and their labels need at least 6 bytes of text, got: 5");
  refused({text.path()}, 2, 3, "one sample in 3 is for validation, and 5 bytes make only 2 of 2 tokens");
  refused({text.path(), folder / "none"}, 2, 0, "none: cannot be opened: No such file");
  refused({testing::TempDir()}, 2, 0, "must be a regular file, got: a directory");
  expectBadInput([&] { writeByteSamples({{text.path()}, 2, 0, folder / "no/data"}); },
                 "no/data: no folder can be made: No such file or directory");
  expectBadInput([&] { writeByteSamples({{text.path()}, 2, 0, text.path()}); }, ": no folder can be made: ");
  // A text is not written over.
  std::string input = folder / "train_labels.npy";
  fs::copy_file(text.path(), input);
  expectBadInput([&] { writeByteSamples({{input}, 2, 0, folder / "."}); }, "would take the place of the text");
  EXPECT_EQ(fs::file_size(input), 5u);
}

// Files of another text do not stay beside new ones, and where something fails all stay as they were.
TEST(ByteTokens, FilesOfTwoTextsDoNotMix) {
  ScratchFolder folder;
  ScratchFile first("aabbccddeeffgg"), second("hhiijjkkllmmnn");
  SampleFiles old = writeByteSamples({{first.path()}, 2, 3, folder / "data"}).training;
  fs::remove(folder / "data/val_input_ids.npy"); // one of the two is enough
  expectBadInput([&] { writeByteSamples({{second.path()}, 2, 0, folder / "data"}); },
                 "val_labels.npy: is there already and holds samples of an earlier run");
  EXPECT_EQ(idsOf(old), "aabbddeegg");
  // The last of four files is on a full disk.
  fs::remove(folder / "data/val_labels.npy");
  fs::create_symlink("/dev/full", folder / "data/val_labels.npy");
  try {
    writeByteSamples({{second.path()}, 2, 3, folder / "data"});
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    EXPECT_EQ(error.code, kExitWorkFailed);
    EXPECT_STREQ(error.what(), ((folder / "data/val_labels.npy") + ": write failed: No space left on device").c_str());
  }
  EXPECT_EQ(idsOf(old), "aabbddeegg");
  EXPECT_FALSE(fs::exists(folder / "data/val_input_ids.npy"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "data"), fs::directory_iterator()), 3); // nothing halfway
}

TEST(ByteTokens, ManyFilesAndPartsStayInOrder) {
  // Longer than a part of the writer, with files of every small size, and more of them than may be open.
  std::string all;
  std::vector<std::unique_ptr<ScratchFile>> files;
  std::vector<std::string> paths;
  for (size_t size = 0; size < 300; ++size) {
    std::string text;
    for (size_t i = 0; i < 6 * size; ++i)
      text += char((size * 31 + i * 7) % 251);
    files.push_back(std::make_unique<ScratchFile>(text));
    paths.push_back(files.back()->path());
    all += text;
  }
  ScratchFolder folder;
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few{100, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  ByteSamplesSummary summary = writeByteSamples({paths, 1000, 0, folder / "data"});
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(idsOf(summary.training).substr(0, all.size()), all);
  EXPECT_EQ(textOfTokens(summary.training.ids).substr(0, all.size()), all);
  EXPECT_EQ(labelsOf(summary.training).substr(0, all.size() - 1), all.substr(1));
}

TEST(ByteTokens, WhatIsNoByteIsNoText) {
  auto file = [](FileType type, std::vector<uint64_t> shape, const auto &values) {
    return npyHeader(type, shape) + std::string(reinterpret_cast<const char *>(&values), sizeof values);
  };
  int64_t ids[] = {72, 105, 10, 255};
  EXPECT_EQ(textOfTokens(ScratchFile(file(FileType::I64, {2, 2}, ids)).path()), "Hi\n\xff");
  EXPECT_EQ(textOfTokens(ScratchFile(npyHeader(FileType::I32, std::vector<uint64_t>{0, 3})).path()), "");
  auto refused = [](const std::string &bytes, const std::string &part) {
    ScratchFile scratch(bytes);
    expectBadInput([&] { textOfTokens(scratch.path()); }, part);
  };
  int64_t large[] = {1, 256}, negative[] = {-1};
  uint64_t huge[] = {~uint64_t(0)};
  float number = 1;
  refused(file(FileType::I64, {2}, large), "element 1 must be a byte, 0 to 255, got: 256");
  refused(file(FileType::I64, {1, 1}, negative), "element 0 must be a byte, 0 to 255, got: -1");
  refused(file(FileType::U64, {1}, huge), "18446744073709551615");
  refused(file(FileType::F32, {1}, number), "holds f32, expected integers");
  refused("text", "is not a .npy file");
}

} // namespace
} // namespace shoal::rt
