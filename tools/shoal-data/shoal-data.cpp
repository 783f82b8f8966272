// shoal-data: files of token ids for language models, and text from such files. Exit codes: 0; 1 when a file cannot be
// written; 2 when the command line or an input is wrong.
#include "core/byte_tokens.h"
#include "core/option_values.h"
#include "core/run_main.h"
#include "shoal-rt/most_size.h"
#include "shoal-rt/option_error.h"

#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

using namespace shoal::rt;

namespace {

struct CommandLine {
  ByteSamples samples;
  std::string window, validateEvery = "10", tokens;
};

constexpr const char *kHelp =
    "shoal-data makes token files of texts, and texts of token files:\n"
    "  shoal-data bytes /usr/share/common-licenses/* --seq 128 -o licences\n"
    "  shoal-data text licences/val_input_ids.npy";

constexpr const char *kBytesHelp =
    "Token i is byte i: a vocabulary of 256. The texts are read one after the other and cut into samples of S tokens; "
    "label i of a sample is the token that follows token i. Files of DIR: train_input_ids.npy, train_labels.npy and, "
    "of the samples for validation, val_input_ids.npy and val_labels.npy, for the inputs of shoal-model's models. Ids "
    "are u8 and labels i16, [samples, S]; the program converts them. What is behind the end of the texts in the last "
    "sample are line ends with the label -100, which counts nowhere.";

void makeSamples(CommandLine &line) {
  line.samples.window = wholeNumber("--seq", line.window, 1, kMostSize);
  line.samples.validateEvery = wholeNumber("--val-every", line.validateEvery, 0);
  if (line.samples.validateEvery == 1)
    badInput("--val-every must be 0 or at least 2, for with 1 no sample is left to train on, got: '1'");
  ByteSamplesSummary summary = writeByteSamples(line.samples);
  for (const std::string &note : summary.notes)
    std::fprintf(stderr, "note: %s\n", oneLine(note).c_str());
  std::string text = cat(summary.files, summary.files == 1 ? " file, " : " files, ", summary.bytes,
                         " bytes, vocabulary ", kByteVocabulary, "\n");
  for (const SampleFiles *files : {&summary.training, &summary.validation})
    if (files->samples != 0)
      text += cat(files == &summary.training ? "training:   " : "validation: ", files->samples, " samples of ",
                  line.samples.window, " tokens, ", files->samples * line.samples.window, " tokens: ",
                  oneLine(files->ids), " ", oneLine(files->labels), "\n");
  std::fputs(text.c_str(), stdout);
}

void printText(const std::string &path) {
  std::string text = textOfTokens(path);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int run(int argc, char **argv) {
  CommandLine line;
  CLI::App app(kHelp, "shoal-data");
  app.set_version_flag("--version", "shoal-data " SHOAL_VERSION);
  app.require_subcommand(1);
  CLI::App *bytes = app.add_subcommand("bytes", "Make samples of texts' bytes");
  bytes->footer(kBytesHelp);
  bytes->add_option("FILE", line.samples.texts, "Texts; one that comes twice, as by a link, is taken once")
      ->required()
      ->type_name("");
  bytes->add_option("--seq", line.window, "Tokens of a sample")->required()->type_name("S");
  bytes->add_option("-o", line.samples.folder, "Folder for the files; it is made where there is none")
      ->required()
      ->type_name("DIR");
  bytes->add_option("--val-every", line.validateEvery,
                    "Samples K, 2K, 3K, ... are for validation, all others for training (default 10); 0: none are")
      ->type_name("K");
  CLI::App *text = app.add_subcommand("text", "Print tokens that are bytes as text, in the file's order");
  text->add_option("FILE.npy", line.tokens, "Integers of any shape, 0 to 255")->required()->type_name("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    badInput(optionError(app, error));
  }
  if (bytes->parsed())
    makeSamples(line);
  else
    printText(line.tokens);
  finishOutput();
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  return runMain("shoal-data: ", [&] { return run(argc, argv); });
}
