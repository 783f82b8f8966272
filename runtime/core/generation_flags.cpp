// Parses the flags of --generate and holds them against the program.
#include "core/generation_flags.h"
#include "core/error.h"
#include "core/option_values.h"
#include "core/token_model.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace shoal::rt {
namespace {

constexpr uint64_t kMostTokens = 1 << 24;
constexpr double kMostTemperature = 1000;
// What goes with --generate alone.
constexpr const char *kCompanions[] = {"--prompt", "--prompt-file", "--temperature", "--top-k", "--samples"};

} // namespace

void GenerationFlags::addTo(CLI::App &app) {
  app.add_option("--generate", tokens_,
                 "Continue a prompt by so many tokens, one run of the program each. Of a program from token ids "
                 "[B, S] to logits [B, S, V], inference only; beyond S tokens it sees the last S")
      ->type_name("N");
  app.add_option("--prompt", prompt_, "The prompt, where tokens are bytes (V = 256)")->type_name("TEXT");
  app.add_option("--prompt-file", promptFile_,
                 "The same from a file: ids [tokens] of a .npy file, or else the file's bytes")
      ->type_name("FILE");
  app.add_option("--temperature", temperature_,
                 "Draw from softmax(logits / T) (default 1); 0: always the token of the largest logit")
      ->type_name("T");
  app.add_option("--top-k", topK_, "Draw only from the K tokens of the largest logits")->type_name("K");
  app.add_option("--samples", samples_, "Continuations to draw, at most B (default 1)")->type_name("M");
}

void GenerationFlags::hideFrom(CLI::App &app) {
  app.get_option("--generate")->group("");
  for (const char *flag : kCompanions)
    app.get_option(flag)->group("");
}

std::optional<GenerationOptions> GenerationFlags::read(const CLI::App &app, const Program &program,
                                                       const std::map<std::string, std::string> &outputs) const {
  auto given = [&](const char *flag) { return app.count(flag) != 0; };
  auto refuse = [&](const char *flag, const char *why) {
    if (given(flag))
      badInput(flag, " does not apply: ", why);
  };
  if (!given("--generate")) {
    for (const char *flag : kCompanions)
      refuse(flag, "there is no --generate");
    return std::nullopt;
  }
  if (program.header().mode == Mode::Train)
    badInput("--generate does not apply: this program was compiled with --mode train");
  std::string why;
  std::optional<TokenModel> model = findTokenModel(program, why);
  if (!model)
    badInput("--generate: ", why);
  refuse("--data", "the tokens are those of the prompt and of --generate");
  refuse("--print", "with --generate no outputs are printed");

  GenerationOptions options;
  options.tokens = wholeNumber("--generate", tokens_, 1, kMostTokens);
  if (given("--prompt") == given("--prompt-file"))
    badInput("--generate needs either --prompt or --prompt-file, got: ", given("--prompt") ? "both" : "neither");
  options.prompt = prompt_;
  options.promptFile = promptFile_;
  if (given("--prompt") && !model->isOfBytes())
    badInput("--prompt is text and needs a vocabulary of ", kByteVocabulary, " bytes, got: ", model->classes,
             "; --prompt-file takes ids from a .npy file");
  if (given("--temperature"))
    options.rule.temperature = realNumber("--temperature", "a number", temperature_, kMostTemperature);
  if (given("--top-k"))
    options.rule.topK = wholeNumber("--top-k", topK_, 1, model->classes);
  if (given("--samples"))
    options.samples = wholeNumber("--samples", samples_, 1, model->rows);
  if (options.rule.temperature == 0) {
    for (const char *flag : {"--top-k", "--samples"})
      refuse(flag, "at --temperature 0 nothing is drawn");
    if (given("--load")) // which else draws the parameters
      refuse("--seed", "at --temperature 0 nothing is drawn");
  }
  if (auto tokens = outputs.find(kTokensOutput); tokens != outputs.end())
    options.tokensFile = tokens->second;
  else if (!model->isOfBytes())
    badInput("--generate prints text only for a vocabulary of ", kByteVocabulary, " bytes, got: ", model->classes,
             "; --output ", kTokensOutput, "=FILE.npy writes ids");
  return options;
}

} // namespace shoal::rt
