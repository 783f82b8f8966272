// shoal-ckpt: what is in a checkpoint of --save, whether it is as it was written, and one file of its tensors. Exit
// codes: 0; 1 when a file cannot be written; 2 when the command line or the checkpoint is wrong.
#include "core/checkpoint_folder.h"
#include "core/checkpoint_tools.h"
#include "core/run_main.h"
#include "shoal-rt/option_error.h"

#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

using namespace shoal::rt;

namespace {

constexpr const char *kHelp =
    "shoal-ckpt reads checkpoints that a program wrote with --save:\n"
    "  shoal-ckpt inspect runs/gpt\n"
    "  shoal-ckpt verify runs/gpt/step-000120\n"
    "  shoal-ckpt merge runs/gpt -o model.safetensors\n"
    "DIR is a checkpoint's own folder, or a folder of them: then it is the last one.";

int run(int argc, char **argv) {
  CLI::App app(kHelp, "shoal-ckpt");
  app.set_version_flag("--version", "shoal-ckpt " SHOAL_VERSION);
  app.require_subcommand(1);
  std::string folder, output;
  bool withState = false;
  auto add = [&](const char *name, const char *what) {
    CLI::App *command = app.add_subcommand(name, what);
    command->add_option("DIR", folder, "Folder of --save, or DIR/step-N")->required()->type_name("");
    return command;
  };
  CLI::App *inspect = add("inspect", "Print step, data order, plan and tensors");
  CLI::App *verify = add("verify", "Read all of it: checksums, and every element in exactly one box");
  CLI::App *merge = add("merge", "Write whole tensors into one file, for --load and Hugging Face's readers");
  merge->add_option("-o", output, "The file")->required()->type_name("FILE.safetensors");
  merge->add_flag("--with-state", withState, "The optimizer's state, too, with which --load goes on");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    badInput(optionError(app, error));
  }
  Checkpoint checkpoint(findCheckpoint(folder));
  std::string text = inspect->parsed()  ? inspectCheckpoint(checkpoint)
                     : verify->parsed() ? verifyCheckpoint(checkpoint)
                     : merge->parsed()  ? mergeCheckpoint(checkpoint, output, withState)
                                        : "";
  std::fputs(text.c_str(), stdout);
  finishOutput();
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  return runMain("shoal-ckpt: ", [&] { return run(argc, argv); });
}
