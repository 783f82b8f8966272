// Which programs and command lines --generate takes.
#include "TestSupport.h"

#include "core/options.h"
#include "core/token_model.h"
#include "shoal-rt/blob_builder.h"

namespace shoal::rt {
namespace {

using test::expectBadInput;

struct Spec {
  Mode mode = Mode::Infer;
  DType ids = DType::I64, logits = DType::F32;
  uint64_t rows = 2, window = 4, classes = 256, logitsWindow = 4;
  int64_t indices = 256;
  bool hasMask = false;
};

Program make(const Spec &spec) {
  BlobBuilder blob("model", spec.mode);
  blob.header().arenaBytes = 1 << 20;
  blob.header().batchRows = spec.rows;
  uint32_t ids = blob.addView(0, spec.rows * spec.window, spec.ids), w = blob.addView(4096, 1, DType::F32);
  uint32_t logits = blob.addView(8192, spec.rows * spec.logitsWindow * spec.classes, spec.logits);
  blob.addArg({.name = "w", .kind = ArgKind::Param, .view = w, .dims = {{1}}, .init = InitKind::Constant});
  blob.addArg(
      {.name = "ids", .view = ids, .dims = {{spec.rows}, {spec.window}}, .batchDim = 0, .indices = spec.indices});
  if (spec.hasMask)
    blob.addArg({.name = "mask",
                 .view = blob.addView(2048, spec.rows * spec.window, spec.ids),
                 .dims = {{spec.rows}, {spec.window}},
                 .batchDim = 0});
  uint32_t result = blob.addResult({.name = "logits", .kind = ResultKind::Output, .view = logits,
                                    .dims = {{spec.rows}, {spec.logitsWindow}, {spec.classes}}, .batchDim = 0});
  blob.addInstr({.op = Opcode::Probe, .a = result});
  std::vector<unsigned char> table = blob.finish();
  return Program(table.data(), table.size());
}

Options parse(const Spec &spec, std::vector<const char *> words) {
  words.insert(words.begin(), "model");
  return parseOptions(int(words.size()), words.data(), make(spec));
}

TEST(GenerationFlags, ProgramsFromIdsToLogits) {
  std::string why;
  Program program = make({});
  std::optional<TokenModel> model = findTokenModel(program, why);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->rows, 2u);
  EXPECT_EQ(model->window, 4u);
  EXPECT_EQ(model->classes, 256u);
  EXPECT_TRUE(model->isOfBytes());
  auto refused = [&](const Spec &spec, const std::string &part) {
    Program other = make(spec);
    EXPECT_FALSE(findTokenModel(other, why));
    EXPECT_NE(why.find(part), std::string::npos) << why;
  };
  refused({.ids = DType::F32, .indices = 0}, "got: ids [rows, 4] f32 and logits [rows, 4, 256] f32");
  refused({.logitsWindow = 1}, "got: ids [rows, 4] i64 and logits [rows, 1, 256] f32");
  refused({.logits = DType::I32}, "logits [rows, 4, 256] i32");
  refused({.hasMask = true}, "got: ids [rows, 4] i64, mask [rows, 4] i64 and");
  refused({.indices = 200}, "expected logits of at most as many classes as input 'ids' takes ids, 200, got: 256");
}

TEST(GenerationFlags, WhatIsAskedFor) {
  Options options = parse({}, {"--generate", "9", "--prompt", "ab"});
  ASSERT_TRUE(options.generation);
  EXPECT_EQ(options.generation->tokens, 9u);
  EXPECT_EQ(options.generation->prompt, "ab");
  EXPECT_EQ(options.generation->rule.temperature, 1);
  EXPECT_EQ(options.generation->rule.topK, 0u);
  EXPECT_EQ(options.generation->samples, 1u);
  EXPECT_TRUE(options.generation->tokensFile.empty());
  options = parse({}, {"--generate", "9", "--prompt-file", "p.npy", "--temperature", "0.5", "--top-k", "3", "--samples",
                       "2", "--seed", "4", "--load", "w", "--output", "tokens=t.npy"});
  EXPECT_EQ(options.generation->promptFile, "p.npy");
  EXPECT_EQ(options.generation->rule.temperature, 0.5);
  EXPECT_EQ(options.generation->rule.topK, 3u);
  EXPECT_EQ(options.generation->samples, 2u);
  EXPECT_EQ(options.generation->tokensFile, "t.npy");
  EXPECT_TRUE(options.outputs.empty());
  EXPECT_FALSE(parse({}, {"--output", "logits=l.npy"}).generation);
}

TEST(GenerationFlags, WhatIsRefused) {
  auto refused = [&](std::vector<const char *> words, const std::string &part, const Spec &spec = {}) {
    expectBadInput([&] { parse(spec, words); }, part);
  };
  refused({"--prompt", "a"}, "--prompt does not apply: there is no --generate");
  refused({"--temperature", "1"}, "--temperature does not apply: there is no --generate");
  refused({"--generate", "9"}, "--generate needs either --prompt or --prompt-file, got: neither");
  refused({"--generate", "9", "--prompt", "a", "--prompt-file", "f"}, "got: both");
  refused({"--generate", "0", "--prompt", "a"},
          "--generate must be an integer of at least 1 and at most 16777216, got: '0'");
  refused({"--generate", "x", "--prompt", "a"}, "got: 'x'");
  std::vector<const char *> base = {"--generate", "9", "--prompt", "a"};
  auto also = [&](std::vector<const char *> words, const std::string &part) {
    words.insert(words.begin(), base.begin(), base.end());
    refused(words, part);
  };
  also({"--temperature", "-1"}, "--temperature must be a number of at least 0 and at most 1000, got: '-1'");
  also({"--temperature", "nan"}, "got: 'nan'");
  also({"--top-k", "257"}, "--top-k must be an integer of at least 1 and at most 256, got: '257'");
  also({"--samples", "3"}, "--samples must be an integer of at least 1 and at most 2, got: '3'");
  also({"--temperature", "0", "--top-k", "2"}, "--top-k does not apply: at --temperature 0 nothing is drawn");
  also({"--temperature", "0", "--samples", "2"}, "--samples does not apply");
  also({"--temperature", "0", "--load", "w", "--seed", "1"},
       "--seed does not apply: at --temperature 0 nothing is drawn");
  also({"--data", "ids=i.npy"}, "--data does not apply: the tokens are those of the prompt");
  also({"--print"}, "--print does not apply");
  also({"--output", "logits=l.npy"}, "the program has no generated output 'logits', it has: tokens");
  refused({"--generate", "9", "--prompt", "a"},
          "--generate does not apply: this program was compiled with --mode train", {.mode = Mode::Train});
  refused({"--generate", "9", "--prompt", "a"}, "--generate: expected a program with one input", {.logitsWindow = 1});
  Spec larger{.classes = 300, .indices = 300};
  refused({"--generate", "9", "--prompt", "a"}, "--prompt is text and needs a vocabulary of 256 bytes, got: 300",
          larger);
  refused({"--generate", "9", "--prompt-file", "p.npy"}, "--output tokens=FILE.npy writes ids", larger);
}

} // namespace
} // namespace shoal::rt
