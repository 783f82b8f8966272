// What --load names: one file or an index of several, with or without the base model's prefix.
#include "TestSupport.h"
#include "core/parameter_files.h"

namespace shoal::rt {
namespace {

using test::expectBadInput;

struct Folder : test::ScratchFolder {
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  // Each tensor is one byte: the first of its name.
  std::string tensors(const std::string &name, const std::vector<std::string> &names) const {
    std::vector<TensorSpec> specs;
    std::string data;
    for (const std::string &tensor : names) {
      specs.push_back({tensor, FileType::U8, {1}});
      data += tensor[0];
    }
    return write(name, SafetensorsLayout(specs).header() + data);
  }
};

TEST(ParameterFiles, OneFile) {
  Folder folder;
  std::string path = folder.tensors("one.safetensors", {"a", "b"});
  ParameterFiles files(path);
  EXPECT_EQ(files.tensors().size(), 2u);
  EXPECT_EQ(*files.find("b")->tensor->data, 'b');
  EXPECT_EQ(files.find("b")->path, path);
  EXPECT_EQ(files.find("c"), nullptr);
  EXPECT_EQ(ParameterFiles::list(path), std::vector<std::string>{path});
}

TEST(ParameterFiles, SeveralWithAnIndex) {
  Folder folder;
  std::string first = folder.tensors("1.safetensors", {"a", "b"});
  std::string second = folder.tensors("2.safetensors", {"c"});
  std::string index = folder.write("model.safetensors.index.json", R"({"metadata": {"total_size": 3},
    "weight_map": {"a": "1.safetensors", "c": "2.safetensors", "b": "1.safetensors"}})");
  ParameterFiles files(index);
  EXPECT_EQ(files.tensors().size(), 3u);
  EXPECT_EQ(*files.find("c")->tensor->data, 'c');
  EXPECT_EQ(files.find("c")->path, second);
  EXPECT_EQ(files.find("a")->path, first);
  EXPECT_EQ(ParameterFiles::list(index), (std::vector<std::string>{index, first, second}));
}

TEST(ParameterFiles, IndexAndFilesMustAgree) {
  Folder folder;
  folder.tensors("1.safetensors", {"a"});
  folder.tensors("2.safetensors", {"a", "b"});
  struct {
    std::string index, part;
  } cases[] = {
      {R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})",
       "2.safetensors: holds tensor 'a', which"},
      {R"({"weight_map": {"a": "1.safetensors", "b": "1.safetensors"}})", "1.safetensors: lacks tensor 'b'"},
      {R"({"weight_map": {"a": "3.safetensors"}})", "3.safetensors: cannot be opened"},
      {R"({"weight_map": {"a": "/etc/passwd"}})", "expected the name of a file beside the index"},
      {R"({"weight_map": {"a": ".."}})", "expected the name of a file beside the index"},
      {R"({"weight_map": ["a"]})", "must hold an object \"weight_map\""},
      {"", "is not a JSON object"},
  };
  for (const auto &test : cases) {
    std::string path = folder.write("index.json", test.index);
    expectBadInput([&] { ParameterFiles files(path); }, test.part);
  }
}

// GPT2Model keeps "wte.weight", GPT2LMHeadModel "transformer.wte.weight".
TEST(ParameterFiles, PrefixOfTheBaseModel) {
  Folder folder;
  std::string plain = folder.tensors("plain", {"wte.weight", "bias"});
  EXPECT_EQ(*ParameterFiles(plain).find("transformer.wte.weight")->tensor->data, 'w');
  EXPECT_EQ(*ParameterFiles(plain).find("model.wte.weight")->tensor->data, 'w');
  EXPECT_EQ(ParameterFiles(plain).find("other.wte.weight"), nullptr);
  EXPECT_EQ(ParameterFiles(plain).find("transformer.none"), nullptr);
  // Where the prefix is in use, a name without it is another tensor.
  std::string mixed = folder.tensors("mixed", {"wte.weight", "transformer.ln_f.weight"});
  EXPECT_EQ(ParameterFiles(mixed).find("transformer.wte.weight"), nullptr);
  EXPECT_EQ(*ParameterFiles(mixed).find("transformer.ln_f.weight")->tensor->data, 't');
}

TEST(ParameterFiles, NamesAsPatterns) {
  EXPECT_EQ(namePatterns({"a"}), "a");
  EXPECT_EQ(namePatterns({"h.0.attn.bias", "h.11.attn.bias", "h.0.ln_1.w", "lm_head.weight"}),
            "h.*.attn.bias (2), h.*.ln_1.w, lm_head.weight");
  EXPECT_EQ(namePatterns({"a", "b", "c", "d", "e"}), "a, b, c, d, ...");
}

} // namespace
} // namespace shoal::rt
