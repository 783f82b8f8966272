// Parses the command line with CLI11, and tells what a config.json may say.
#include "Options.h"

#include "shoal-rt/most_size.h"
#include "shoal-rt/option_error.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

namespace shoal {
namespace {

/// A whole number, which CLI11 would also read from -1 and 1e3.
CLI::Validator wholeNumber() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        bool isNumber = !text.empty() && text.size() <= 8 && text.find_first_not_of("0123456789") == std::string::npos;
        return isNumber && std::stoll(text) >= 1 && std::stoll(text) <= rt::kMostSize
                   ? ""
                   : "must be a whole number from 1 to " + std::to_string(rt::kMostSize) + ", got: '" + text + "'";
      },
      "N");
}

std::string footer() {
  std::string text =
      "The function has two inputs, input_ids and labels, both of B rows of S token ids (i64). Label i of a row is the "
      "token that should follow token i: labels are shifted by whoever makes the data, not by the model. The label "
      "-100 "
      "counts nowhere. Results are the loss, the mean over all labels that count, and the logits of each token.\n\n"
      "Parameters have the names and, in files, the shapes of transformers' GPT2LMHeadModel, LlamaForCausalLM and "
      "MistralForCausalLM. The compiled program takes such a checkpoint by --load, model.safetensors or "
      "model.safetensors.index.json, and writes one by --dump-params. They are f32; floats of other types convert.\n\n"
      "Every field of the config is honoured, or has no effect on the loss and the logits, or is an error that names "
      "it. Without effect are: ";
  for (llvm::StringLiteral name : models::withoutEffect())
    text += name.str() + ", ";
  text += "and pad_token_id of gpt2.";
  return text;
}

} // namespace

std::optional<int> parseCommandLine(int argc, char **argv, ModelCommandLine &line) {
  CLI::App app("shoal-model writes a model as L1 IR, for shoalc, from its config.json of Hugging Face's transformers:\n"
               "  shoal-model gpt2 --config config.json --batch 8 --seq 256 -o model.mlir",
               "shoal-model");
  app.set_version_flag("--version", "shoal-model " SHOAL_VERSION);
  app.footer(footer());
  static const std::map<std::string, Family> families = {{"gpt2", Family::Gpt2}, {"llama", Family::Llama}};
  std::string family, dropout = "config";
  app.add_option("FAMILY", family, "gpt2; or llama, which also takes the model_type mistral")
      ->required()
      ->check(CLI::IsMember({"gpt2", "llama"}));
  app.add_option("--config", line.config, "the model's config.json")->required()->type_name("FILE");
  app.add_option("--batch", line.batch.rows, "rows of a batch")->required()->check(wholeNumber())->type_name("B");
  app.add_option("--seq", line.batch.tokens, "tokens of a row, at most those that the config has positions for")
      ->required()
      ->check(wholeNumber())
      ->type_name("S");
  app.add_option("-o", line.output, "where to write the model ('-', the default: stdout)")->type_name("FILE.mlir");
  app.add_option("--dropout", dropout,
                 "config: the rates of the config, where that of attention must be 0, for it has no dropout; "
                 "off: none, whatever the config says (config)")
      ->check(CLI::IsMember({"config", "off"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    std::cerr << "shoal-model: error: " << rt::optionError(app, error) << "\n";
    return 2;
  }
  line.family = families.at(family);
  line.dropout = dropout == "off" ? models::Dropout::Off : models::Dropout::Config;
  return std::nullopt;
}

} // namespace shoal
