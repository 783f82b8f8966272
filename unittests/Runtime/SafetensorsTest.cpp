// safetensors files: what is laid out is read back, and hostile headers end in one line.
#include "TestSupport.h"
#include "core/safetensors.h"

#include <cstring>

namespace shoal::rt {
namespace {

using test::expectBadInput;
using test::ScratchFile;

std::string safetensors(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  std::string text(reinterpret_cast<const char *>(&length), 8);
  return text + header + data;
}

TEST(Safetensors, ReadsWhatItLaysOut) {
  SafetensorsLayout layout({{"w", FileType::F32, {2, 3}},
                            {"a name with \"quotes\"", FileType::BF16, {1}},
                            {"scalar", FileType::I64, {}},
                            {"empty", FileType::F64, {0, 4}}});
  EXPECT_EQ(layout.header().size() % 8, 0u);
  EXPECT_NE(layout.header().find(R"("__metadata__":{"format":"pt"})"), std::string::npos);
  EXPECT_EQ(layout.offsets()[0], layout.header().size());
  std::string data(24 + 2 + 8, '\0');
  data[24] = 'b';
  ScratchFile file(layout.header() + data);
  SafetensorsFile read(file.path());
  EXPECT_EQ(read.tensors().size(), 4u);
  EXPECT_EQ(read.find("w")->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(read.find("a name with \"quotes\"")->type, FileType::BF16);
  EXPECT_EQ(*read.find("a name with \"quotes\"")->data, 'b');
  EXPECT_EQ(read.find("scalar")->type, FileType::I64);
  EXPECT_EQ(read.find("nothing"), nullptr);
}

TEST(Safetensors, ReadsMetadataAndSpaces) {
  ScratchFile file(safetensors(
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}    )",
      "12345678"));
  EXPECT_EQ(SafetensorsFile(file.path()).tensors().size(), 1u);
}

TEST(Safetensors, RefusesHostileFiles) {
  auto tensor = [](const std::string &fields) { return R"({"w":{)" + fields + "}}"; };
  std::string deep(100'000, '[');
  struct {
    std::string bytes, part;
  } cases[] = {
      {"", "not a safetensors file"},
      {"1234567", "not a safetensors file"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "a header of 18446744073709551615"},
      {safetensors("", ""), "not a JSON object"},
      {safetensors("[]", ""), "not a JSON object"},
      {safetensors("{", ""), "not a JSON object"},
      {safetensors(R"({"w":)" + deep, ""), "nested more than 8 deep"},
      {safetensors(R"({"w":1})", ""), "'w': expected dtype"},
      {safetensors(tensor(R"("dtype":"F32","shape":[2])"), ""), "expected dtype"},
      {safetensors(tensor(R"("dtype":"F8","shape":[2],"data_offsets":[0,2])"), "12"),
       "unknown dtype 'F8'"},
      {safetensors(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "12345678"),
       "integers of at least 0"},
      {safetensors(tensor(R"("dtype":"F32","shape":[2.5],"data_offsets":[0,8])"), "12345678"),
       "integers of at least 0"},
      {safetensors(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
                   "12345678"),
       "does not fit 64 bits"},
      {safetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,9])"), "123456789"),
       "F32[2] takes 8"},
      {safetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "12345678"),
       "takes 8"},
      {safetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,16])"), "12345678"),
       "takes 8 of 8 bytes"},
      {safetensors(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "12345678"),
       "must follow each other"},
      {safetensors(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "12345678"),
       "take 4 bytes of data, got: 8"},
      {safetensors(R"({"v":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                   R"("w":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})",
                   "12345"),
       "must follow each other"},
      {safetensors(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                   R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                   "1"),
       "holds \"w\" twice"},
  };
  for (const auto &test : cases) {
    ScratchFile file(test.bytes);
    expectBadInput([&] { SafetensorsFile read(file.path()); }, test.part);
  }
}

TEST(Safetensors, SurvivesCutsAndChanges) {
  std::string good =
      safetensors(R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})", "12345678");
  for (size_t size = 0; size < good.size(); ++size) {
    ScratchFile file(good.substr(0, size));
    EXPECT_THROW(SafetensorsFile(file.path()), Error) << size;
  }
  for (size_t at = 0; at < good.size(); ++at)
    for (char byte : {'\0', '\xff', '{', '"', '9', '-'}) {
      std::string changed = good;
      changed[at] = byte;
      ScratchFile file(changed);
      try {
        SafetensorsFile read(file.path());
      } catch (const Error &error) {
        EXPECT_EQ(error.code, kExitBadInput);
      }
    }
}

} // namespace
} // namespace shoal::rt
