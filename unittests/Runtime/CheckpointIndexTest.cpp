// The index of a checkpoint: what is written is read again, and everything else is refused with one line.
#include "TestSupport.h"
#include "core/checkpoint_index.h"
#include "core/crc32c.h"

namespace shoal::rt {
namespace {

using test::expectBadInput;

CheckpointIndex sample() {
  CheckpointIndex index;
  index.program = "mlp";
  index.plan = "mesh data=2";
  index.ranks = 2;
  index.position = {7, 1, 3};
  index.seed = UINT64_MAX;
  index.shuffled = true;
  index.rows = 30;
  index.batchRows = 8;
  index.files = {{"a.safetensors", {100, 0xe3069283}}, {"b.safetensors", {100, 1}}};
  index.tensors["w"] = {TensorKind::Param, FileType::F32, {4, 6}, {24},
                        {{"a.safetensors", "w[0:1, 0:6]", {0, 0}, {1, 6}},
                         {"a.safetensors", "w[1:2, 0:2]", {1, 0}, {1, 2}},
                         {"b.safetensors", "w[1:2, 2:6]", {1, 2}, {1, 4}},
                         {"b.safetensors", "w[2:4, 0:6]", {2, 0}, {2, 6}}},
                        "",
                        1};
  index.tensors["w.m"] = {TensorKind::State, FileType::F32, {2}, {2}, {{"b.safetensors", "w.m[0:2]", {0}, {2}}}, "w"};
  index.tensors["step"] = {TensorKind::Step, FileType::I64, {}, {}, {{"b.safetensors", "step[]", {}, {}}}, ""};
  return index;
}

// A changed text with the checksum that belongs to it.
std::string resealed(std::string text) {
  size_t at = text.rfind("\"index_crc32c\"");
  text.resize(at);
  return text + "\"index_crc32c\": \"" + crcText(crc32c(text)) + "\"\n}\n";
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return resealed(text.replace(at, from.size(), to));
}

TEST(CheckpointIndex, RoundTrip) {
  CheckpointIndex index = sample();
  std::string text = toText(index);
  CheckpointIndex read = parseCheckpointIndex(text, "index.json");
  EXPECT_EQ(toText(read), text);
  EXPECT_EQ(read.position.step, 7u);
  EXPECT_EQ(read.position.epoch, 1u);
  EXPECT_EQ(read.position.batch, 3u);
  EXPECT_EQ(read.seed, UINT64_MAX);
  EXPECT_TRUE(read.shuffled);
  ASSERT_EQ(read.tensors.count("w"), 1u);
  EXPECT_EQ(read.tensors["w"].states, 1u);
  EXPECT_EQ(read.tensors["w.m"].of, "w");
  EXPECT_EQ(read.tensors["w"].fileShape, std::vector<uint64_t>{24});
  EXPECT_EQ(read.tensors["w"].boxes[2].start, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(read.files["a.safetensors"].crc, 0xe3069283u);
}

TEST(CheckpointIndex, FingerprintIsOfTheModel) {
  CheckpointIndex index = sample(), other = sample();
  other.position.step = 8;
  other.tensors.erase("step");
  EXPECT_EQ(index.fingerprint(), other.fingerprint());
  other.tensors["w"].type = FileType::F64;
  EXPECT_NE(index.fingerprint(), other.fingerprint());
}

TEST(CheckpointIndex, EveryChangedByteIsSeen) {
  std::string text = toText(sample());
  for (size_t i = 0; i < text.size(); ++i)
    for (char flip : {1, 32}) {
      std::string changed = text;
      changed[i] ^= flip;
      expectBadInput([&] { parseCheckpointIndex(changed, "i.json"); }, "i.json: ");
    }
  for (size_t size = 0; size < text.size(); ++size)
    expectBadInput([&] { parseCheckpointIndex(text.substr(0, size), "i.json"); }, "i.json: ");
}

TEST(CheckpointIndex, Refusals) {
  std::string text = toText(sample());
  struct {
    std::string from, to, part;
  } cases[] = {
      {"\"version\": 2", "\"version\": 3", "\"version\" must be 2, got: 3; a newer release wrote it"},
      {"\"version\": 2", "\"version\": 1", "\"version\" must be 2, got: 1; it does not say whose state a tensor is"},
      {"shoal checkpoint", "else", "\"format\" must be \"shoal checkpoint\", got: 'else'"},
      {"\"step\": 7,\n", "", "lacks \"step\""},
      {"\"step\": 7", "\"step\": -7", "\"step\" must be a whole number, got: -7"},
      {"\"step\": 7", "\"step\": 7, \"step\": 8", "holds \"step\" twice"},
      {"\"step\": 7", "\"step\": 9223372036854775808",
       "\"step\" must be at most 9223372036854775807, got: 9223372036854775808"},
      {"\"step\": 7", "\"step\": 3", "\"epoch\" and \"batch\" together must be at most \"step\" 3, got: 1 and 3"},
      {"\"epoch\":1", "\"epoch\":18446744073709551615", "must be at most \"step\" 7, got: 18446744073709551615 and 3"},
      {"\"batch\":3", "\"batch\":4", "\"batch\" must be 0 or less than 4, the batches of an epoch, got: 4"},
      {"\"batch\":3", "\"batch\":18446744073709551615",
       "must be 0 or less than 4, the batches of an epoch, got: 18446744073709551615"},
      {"\"rows\":30,\"batch_rows\":8", "\"rows\":18446744073709551615,\"batch_rows\":18446744073709551615",
       "must be 0 or less than 1, the batches of an epoch, got: 3"},
      {"\"epoch\":1,\"batch\":3,\"rows\":30,\"batch_rows\":8", "\"epoch\":0,\"batch\":1,\"rows\":0,\"batch_rows\":0",
       "data without batches (\"batch_rows\" is 0) must have \"epoch\" 0, \"batch\" 0 and \"rows\" 0, got: 0, 1 and 0"},
      {"\"batch\":3,\"rows\":30,\"batch_rows\":8", "\"batch\":0,\"rows\":30,\"batch_rows\":0", "got: 1, 0 and 30"},
      {"\"bytes\":100", "\"bytes\":18446744073709551615", "the bytes of its files do not fit 64 bits"},
      {"\"kind\":\"param\"", "\"kind\":\"grad\"", "tensor 'w': unknown kind 'grad'"},
      {"\"of\":\"w\"", "\"of\":\"u\"", "tensor 'w.m': \"of\" must name a parameter, got: 'u', which is not there"},
      {"\"of\":\"w\"", "\"of\":\"w.m\"", "tensor 'w.m': \"of\" must name a parameter, got: 'w.m', of kind state"},
      {"\"of\":\"w\"", "\"of\":\"step\"", "\"of\" must name a parameter, got: 'step', of kind step"},
      {"\"of\":\"w\"", "\"of\":3", "tensor 'w.m': \"of\" must be a string, got: 3"},
      {",\"of\":\"w\"", "", "tensor 'w.m': lacks \"of\""},
      {"\"kind\":\"step\"", "\"kind\":\"step\",\"of\":\"w\"", "tensor 'step': only state has \"of\", got: step"},
      {"\"kind\":\"step\"", "\"kind\":\"step\",\"states\":1",
       "tensor 'step': only a parameter has \"states\", got: step"},
      {"\"states\":1", "\"states\":2", "tensor 'w': must have 2 tensors of state (\"states\"), got: 1, 'w.m'"},
      {",\"states\":1", "", "tensor 'w': must have 0 tensors of state (\"states\"), got: 1, 'w.m'"},
      {"\"states\":1", "\"states\":-1", "tensor 'w': \"states\" must be a whole number, got: -1"},
      {"\"dtype\":\"f32\"", "\"dtype\":\"f31\"", "tensor 'w': unknown dtype 'f31'"},
      {"\"shape\":[4,6]", "\"shape\":[4294967296,4294967296]", "does not fit 64 bits"},
      {"\"file_shape\":[24]", "\"file_shape\":[25]", "must have as many elements"},
      {"\"start\":[1,2],\"shape\":[1,4]", "\"start\":[1,2],\"shape\":[1,5]", "must lie in [4, 6]"},
      {"\"start\":[1,2],\"shape\":[1,4]", "\"start\":[1,2],\"shape\":[1,18446744073709551615]", "must lie in [4, 6]"},
      {"\"start\":[1,2],\"shape\":[1,4]", "\"start\":[1],\"shape\":[1,4]", "must lie in [4, 6]"},
      {"\"start\":[1,2],\"shape\":[1,4]", "\"start\":[1,1],\"shape\":[1,4]",
       "the boxes at [1, 0] of shape [1, 2] and at [1, 1] of shape [1, 4] overlap"},
      {"\"start\":[1,2],\"shape\":[1,4]", "\"start\":[1,2],\"shape\":[1,3]",
       "tensor 'w': its boxes must hold all of its elements, none holds the one at [1, 5]"},
      {"\"start\":[],\"shape\":[]}",
       "\"start\":[],\"shape\":[]},{\"file\":\"b.safetensors\",\"tensor\":\"s\",\"start\":[],\"shape\":[]}",
       "tensor 'step': the boxes at [] of shape [] and at [] of shape [] overlap"},
      {"\"file\":\"b.safetensors\"", "\"file\":\"c.safetensors\"",
       "a box is in 'c.safetensors', which is not among the files"},
      {"\"b.safetensors\": {", "\"../b\": {", "expected the name of a file beside the index, got: '../b'"},
      {"\"tensor\":\"step[]\"", "\"tensor\":\"w.m[0:2]\"",
       "tensor 'w.m': 'w.m[0:2]' in 'b.safetensors' is another box already"},
      {"\"bytes\":100", "\"bytes\":31", "file 'a.safetensors': has 31 bytes, too few for the boxes in it"},
      {"\"crc32c\":\"e3069283\"", "\"crc32c\":\"E3069283\"", "must be 8 hexadecimal digits"},
      {"\"fingerprint\": \"", "\"fingerprint\": \"00000000\", \"was\": \"", "\"fingerprint\" must be"},
      {"\"shuffle\":true", "\"shuffle\":1", "\"shuffle\" must be true or false, got: 1"},
      {"\"shape\":[4,6]", "\"shape\":[4,-6]", "tensor 'w': \"shape\" must be an array of whole numbers, got: [4,-6]"},
      {"\"file\":\"b.safetensors\"", "\"file\":null", "\"file\" must be a string, got: null"},
      {"\"boxes\":[{", "\"boxes\":[7,{", "a box must be an object, got: 7"},
      {"\"kind\":\"param\"", "\"kind\":\"" + std::string(500, 'p') + "\"",
       "unknown kind '" + std::string(60, 'p') + " ... " + std::string(20, 'p') + "'"},
  };
  for (const auto &test : cases) {
    SCOPED_TRACE(test.part);
    expectBadInput([&] { parseCheckpointIndex(replaced(text, test.from, test.to), "i.json"); }, test.part);
  }
  CheckpointIndex cut = sample();
  IndexTensor &buffer = cut.tensors["b"];
  buffer.kind = TensorKind::Buffer;
  buffer.shape = buffer.fileShape = std::vector<uint64_t>(25, 2);
  buffer.boxes.push_back({"b.safetensors", "b", std::vector<uint64_t>(25, 0), std::vector<uint64_t>(25, 1)});
  expectBadInput([&] { parseCheckpointIndex(toText(cut), "i.json"); },
                 "tensor 'b': its boxes must have at most 33554432 corners where they are cut, got: 1 boxes, cut along 25 dimensions");
  expectBadInput([] { parseCheckpointIndex("", "i.json"); }, "is not a JSON object");
  expectBadInput([] { parseCheckpointIndex(std::string(100, '['), "i.json"); }, "nested");
}

TEST(CheckpointIndex, StateLiesInFilesAsItsParameter) {
  using Shape = std::vector<uint64_t>;
  auto parse = [](const Shape &shape, const Shape &fileShape) {
    CheckpointIndex index = sample();
    index.files["b.safetensors"].bytes = 300;
    index.tensors["w.m"] = {TensorKind::State, FileType::F32, shape, fileShape,
                            {{"b.safetensors", "w.m", Shape(shape.size(), 0), shape}}, "w"};
    parseCheckpointIndex(toText(index), "i.json");
  };
  // The parameter has shape [4, 6], and [24] in files; its state any shape.
  parse({4, 6}, {24});
  parse({6, 4}, {24});
  parse({24}, {24});
  parse({4}, {4});
  parse({}, {});
  expectBadInput([&] { parse({4, 6}, {4, 6}); }, "i.json: tensor 'w.m': state of shape [4, 6] must have the file_shape "
                                                 "[24], which its parameter has, got: [4, 6]");
  expectBadInput([&] { parse({4}, {2, 2}); },
                 "i.json: tensor 'w.m': state of shape [4] must have the file_shape [4], its own, got: [2, 2]");
}

} // namespace
} // namespace shoal::rt
