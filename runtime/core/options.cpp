// Parses the command line and holds it against the program: a flag that cannot mean
// anything here is an error, not ignored.
#include "core/options.h"
#include "core/error.h"
#include "core/file.h"
#include "core/generation_flags.h"
#include "core/option_values.h"
#include "core/parameter_files.h"
#include "core/timeline.h"
#include "core/token_model.h"
#include "shoal-rt/option_error.h"
#include "shoal-rt/report.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace shoal::rt {
namespace {

constexpr double kMostTimeout = 4e6; // seconds; the progress board holds milliseconds in 32 bits

bool isTraining(const Program &program) { return program.header().mode == Mode::Train; }

// Whether there is something to load and dump.
bool hasModelState(const Program &program) {
  return std::any_of(program.tensors().begin(), program.tensors().end(),
                     [](const Tensor &tensor) { return isModelState(tensor.kind); });
}

std::string shapeWithType(const Program &program, const std::vector<uint64_t> &shape, int32_t batchDim,
                          uint32_t view) {
  if (shape.empty())
    return dtypeName(program.views()[view].dtype);
  return shapeText(shape, batchDim) + " " + dtypeName(program.views()[view].dtype);
}

// What stands on top of --help: that it is one of many, and of which plan.
std::string titleOf(const Program &program) {
  std::string plan(program.plan());
  return cat("A program compiled by shoalc: ", meshText(program), plan.empty() ? "" : ", ", plan);
}

// What this program is: the part of --help that no manual has.
std::string describe(const Program &program, const Program *evaluation, const std::string &command) {
  const Header &header = program.header();
  std::string name(program.name());
  std::string text = "This program: '" + name + "', " +
                     (isTraining(program) ? "a training step" : "inference") + " on " +
                     std::to_string(program.numPositions()) + " rank" +
                     (program.numPositions() == 1 ? "" : "s") + " (" + meshText(program) + ")";
  if (header.batchRows != 0)
    text += ", batches of " + std::to_string(header.batchRows) + " rows";
  text += "\n";
  std::string data;
  for (const Arg &arg : program.args()) {
    if (arg.kind != ArgKind::Input)
      continue;
    std::string input(program.str(arg.name));
    text += "  input    " + input + "  " +
            shapeWithType(program, program.batchShape(arg), arg.batchDim < 0 ? -1 : 0, arg.view) + "\n";
    data += " --data " + input + "=" + input + ".npy";
  }
  for (const Tensor &tensor : program.tensors())
    if (isModelState(tensor.kind) && tensor.begin == 0) // once, though it lie in several buckets
      text += (tensor.kind == TensorKind::Param ? "  param    " : "  buffer   ") +
              std::string(program.str(tensor.name)) + "  " +
              shapeWithType(program, program.fileShape(tensor), -1, tensor.view) + "\n";
  std::string output;
  for (const Result &result : program.results()) {
    const char *kind = result.kind == ResultKind::Loss     ? "loss"
                       : result.kind == ResultKind::Metric ? "metric"
                       : result.kind == ResultKind::Output ? "output"
                                                           : nullptr;
    if (!kind)
      continue;
    std::string resultName(program.str(result.name));
    text += "  " + std::string(kind) + std::string(9 - std::string(kind).size(), ' ') +
            resultName + "  " +
            shapeWithType(program, globalShape(program.dims(result)), result.batchDim, result.view) + "\n";
    if (result.kind == ResultKind::Output && output.empty())
      output = " --output " + resultName + "=" + resultName + ".npy";
  }
  if (evaluation) {
    std::string inputs;
    for (const Arg &arg : evaluation->args())
      if (arg.kind == ArgKind::Input)
        inputs += " " + std::string(evaluation->str(arg.name));
    text += "  evaluation of the loss on" + (inputs.empty() ? " no input" : inputs) + "\n";
  }
  text += "\nFor example:\n  " + command + data +
          (isTraining(program) ? std::string(header.batchRows ? " --epochs 10 --shuffle" : " --steps 100") +
                                     " --dump-params params.safetensors"
                               : std::string(hasModelState(program) ? " --load params.safetensors" : "") + output) +
          "\n";
  std::string unused;
  if (std::optional<TokenModel> model = findTokenModel(program, unused); model && !isTraining(program))
    text += "  " + command + (hasModelState(program) ? " --load params.safetensors" : "") + " --generate 100" +
            (model->isOfBytes() ? " --prompt TEXT" : " --prompt-file ids.npy --output tokens=tokens.npy") + "\n";
  return text;
}

// Splits NAME=FILE pairs and checks the names against what the program has.
std::map<std::string, std::string> pairs(const char *flag, const char *what,
                                         const std::vector<std::string> &given,
                                         const std::vector<std::string> &known) {
  std::map<std::string, std::string> result;
  for (const std::string &pair : given) {
    size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size())
      badInput(flag, " expects NAME=FILE, got: '", pair, "'");
    std::string name = pair.substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string names;
      for (const std::string &one : known)
        names += (names.empty() ? "" : ", ") + one;
      badInput(flag, ": the program has no ", what, " '", name, "', it has: ",
               names.empty() ? "none" : names);
    }
    if (!result.emplace(name, pair.substr(equals + 1)).second)
      badInput(flag, " names '", name, "' twice");
  }
  return result;
}

// A flag that can mean nothing to this program, and why: not listed by --help, refused where it is given.
struct Misfit {
  const char *flag;
  std::string why;
};

std::vector<Misfit> findMisfits(const Program &program, const Program *evaluation) {
  std::vector<Misfit> misfits;
  auto add = [&](std::initializer_list<const char *> flags, const std::string &why) {
    for (const char *flag : flags)
      misfits.push_back({flag, why});
  };
  bool trains = isTraining(program);
  if (trains)
    add({"--output", "--print"}, "this program was compiled with --mode train; outputs are those of one compiled with "
                                 "--mode infer, which takes what --dump-params writes");
  else
    add({"--steps", "--epochs", "--shuffle", "--dump-params", "--dump-grads", "--save", "--save-every", "--keep",
         "--resume"},
        "this program was compiled with --mode infer and runs over the data once");
  if (!evaluation)
    add({"--eval-data", "--eval-every"}, trains ? "a local program (L2) brings no evaluation program"
                                                : "this program was compiled with --mode infer");
  if (trains && program.header().batchRows == 0)
    add({"--epochs", "--shuffle"}, "the program has no batched input");
  std::set<ResultKind> results;
  for (const Result &result : program.results())
    results.insert(result.kind);
  if (!hasModelState(program))
    add({"--load", "--dump-params", "--save", "--save-every", "--keep", "--resume"}, "the program has no parameters");
  if (!results.count(ResultKind::Loss))
    add({"--stop-on-nan"}, "the program has no loss");
  if (!results.count(ResultKind::Output))
    add({"--print"}, "the program has no outputs");
  if (!results.count(ResultKind::Grad))
    add({"--dump-grads"}, "the program has no gradients");
  bool reduces = false;
  for (const Instr &instr : program.instrs())
    reduces |= goesThroughWindows(instr.op) &&
               program.extent(program.axesOf(program.groups()[instr.a])) > 1;
  if (!hasScopes(program))
    add({"--timeline", "--timeline-step"}, "the program has no stages of a pipeline; --trace tells when its rows ran");
  if (!reduces)
    add({"--local-comm"}, "the program has no all-reduce, all-gather or reduce-scatter between ranks");
  return misfits;
}

void checkApplicable(const CLI::App &app, const Program &program, const Program *evaluation) {
  auto given = [&](const char *flag) { return app.count(flag) != 0; };
  auto refuse = [&](const char *flag, const std::string &why) {
    if (given(flag))
      badInput(flag, " does not apply: ", why);
  };
  for (const Misfit &misfit : findMisfits(program, evaluation))
    refuse(misfit.flag, misfit.why);
  // Parameters may be drawn instead of loaded, tokens may be drawn, so the seed still means something.
  if (!isTraining(program) && given("--load") && !given("--generate"))
    refuse("--seed", "this program was compiled with --mode infer and runs over the data once");
  if (given("--eval-every") && !given("--eval-data"))
    badInput("--eval-every needs --eval-data");
  for (const char *flag : {"--save-every", "--keep"})
    if (given(flag) && !given("--save"))
      badInput(flag, " needs --save");
  for (auto [flag, other] : {std::pair{"--steps", "--epochs"}, {"--resume", "--load"}})
    if (given(flag) && given(other))
      badInput(flag, " and ", other, " exclude each other");
  bool hasParams = false, isRandom = false;
  for (const Arg &arg : program.args())
    hasParams |= arg.kind == ArgKind::Param, isRandom |= arg.kind == ArgKind::Seed;
  if ((!hasParams || given("--load")) && !given("--shuffle") && !given("--generate") && !isRandom && !given("--resume"))
    refuse("--seed", "without --shuffle it draws first values of parameters, and here are none to draw");
  if (given("--trace-steps") && !given("--trace"))
    refuse("--trace-steps", "there is no --trace");
  if (given("--timeline-step") && !given("--timeline"))
    refuse("--timeline-step", "there is no --timeline");
}

// A flag that takes a file or folder, by the name of its type. Those of pairs are checked by pairs().
void checkPaths(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options()) {
    std::string type = option->get_type_name();
    bool takesPath = type.starts_with("FILE") || type == "DIR";
    if (takesPath && option->count() != 0 && option->as<std::string>().empty())
      badInput(option->get_name(), " must not be empty, expected ", type);
  }
}

// No output takes the place of an input or of another output, nor lies among checkpoints. Parameters may go back to the
// one file they came from: it is replaced when the new one is complete.
void checkFiles(const Options &options) {
  std::map<std::string, std::string> taken; // identity, flag
  std::vector<std::string> loaded = options.load.empty() ? std::vector<std::string>{}
                                                         : ParameterFiles::list(options.load);
  auto take = [&](const std::string &flag, const std::string &path, bool isInput) {
    std::string identity = path.empty() ? "" : identityOf(path);
    if (identity.empty())
      return;
    auto [entry, isNew] = taken.try_emplace(identity, flag);
    bool isReload = entry->second == "--load" && flag == "--dump-params" && loaded.size() == 1;
    if (!isNew && !isInput && !isReload)
      badInput(flag, " and ", entry->second, " name the same file: ", path);
    if (!isInput)
      for (auto [other, folder] : {std::pair("--resume", &options.resume), {"--save", &options.save}})
        if (!folder->empty() && liesIn(path, *folder))
          badInput(flag, ": ", path, " lies in the folder of ", other,
                   ", which is kept for checkpoints; name another file");
  };
  for (const auto &[name, path] : options.data)
    take(cat("--data ", name), path, true);
  for (const auto &[name, path] : options.evalData)
    take(cat("--eval-data ", name), path, true);
  for (const std::string &path : loaded)
    take("--load", path, true);
  for (const auto &[name, path] : options.outputs)
    take(cat("--output ", name), path, false);
  take("--dump-params", options.dumpParams, false);
  take("--dump-grads", options.dumpGrads, false);
  take("--metrics", options.metrics, false);
  take("--report", options.report, false);
  take("--trace", options.trace, false);
  take("--timeline", options.timeline, false);
  if (const auto &generation = options.generation) {
    take("--prompt-file", generation->promptFile, true);
    take("--output tokens", generation->tokensFile, false);
  }
}

} // namespace

std::string meshText(const Program &program) {
  Report report; // whose axes are whole where the compiler split one
  for (const Axis &axis : program.axes())
    report.addAxis(std::string(program.str(axis.name)), axis.size);
  std::string text;
  for (const auto &[name, size] : report.axes)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text.empty() ? "one device" : "mesh " + text;
}

Options parseOptions(int argc, const char *const *argv, const Program &program,
                     const Program *evaluation) {
  Options options;
  std::vector<std::string> data, evalData, outputs;
  std::string steps, epochs, seed, saveEvery, keep, evalEvery, logEvery, threads, localComm, timeout, traceSteps, timelineStep;
  std::vector<std::string> delays;
  CLI::App app(titleOf(program));
  app.set_help_flag();
  bool help = false, version = false;
  app.add_flag("-h,--help", help, "Print this help");
  app.add_flag("--version", version, "Print the version");
  app.add_option("--data", data, "An input and its .npy file; once per input")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--steps", steps, "Steps to run, through as many epochs as that takes")
      ->type_name("N");
  app.add_option("--epochs", epochs, "Passes over the data (default 1)")->type_name("N");
  app.add_option("--seed", seed, "Seed of parameters, shuffling, dropout and drawn tokens (default 0)")
      ->type_name("S");
  app.add_flag("--shuffle", options.shuffle,
               "Shuffle the rows anew each epoch, the same way under every plan");
  app.add_option("--eval-data", evalData,
                 "An input of the evaluation and its .npy file; inputs that are no batch may come from --data")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--eval-every", evalEvery,
                 "Steps between evaluations (default: one at the end of each epoch); the last step is always followed by one")
      ->type_name("K");
  app.add_option("--load", options.load,
                 "Parameters to start from, and the optimizer's state if all of it is there; a model of several "
                 "files by its FILE.safetensors.index.json")
      ->type_name("FILE.safetensors");
  app.add_option("--dump-params", options.dumpParams, "Write the final parameters")
      ->type_name("FILE.safetensors");
  app.add_option("--dump-grads", options.dumpGrads, "Write the gradients of the first step")
      ->type_name("FILE.safetensors");
  app.add_option("--save", options.save,
                 "Write checkpoints, from which --resume goes on: a folder DIR/step-N each, one at the end")
      ->type_name("DIR");
  app.add_option("--save-every", saveEvery, "Steps between checkpoints")->type_name("K");
  app.add_option("--keep", keep, "Checkpoints of DIR that stay, the last ones (default: all)")->type_name("K");
  app.add_option("--resume", options.resume,
                 "Go on from the last checkpoint of DIR, or from DIR/step-N, whatever plan and number of ranks wrote "
                 "it: parameters, optimizer, step, seed and the order of the data. --steps and --epochs count from the "
                 "beginning of the training")
      ->type_name("DIR");
  app.add_option("--output", outputs, "Write an output, its rows in the order of the data")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  app.add_flag("--print", options.print, "Print every output as each rank holds it, in rank order");
  app.add_option("--log-every", logEvery,
                 "Steps between lines of the log (default 10) or changes of the progress line (default 1)")
      ->type_name("K");
  app.add_option("--metrics", options.metrics, "Write one JSON object per step")
      ->type_name("FILE.jsonl");
  app.add_option("--report", options.report, "Write bytes held and sent per rank, as counted")
      ->type_name("FILE.json");
  app.add_option("--threads", threads, "Threads per rank in matrix products (default 1)")
      ->type_name("T");
  app.add_option("--local-comm", localComm,
                 "What all-reduces, all-gathers and reduce-scatters between ranks of one machine go through: windows of each other's memory "
                 "(default for large ones, where the machine has room for them) or MPI; "
                 "sums may differ between the two in their last bits")
      ->type_name("windows|mpi");
  app.add_option("--trace", options.trace,
                 "Write when each row of the first steps ran on each rank, as a Chrome trace")
      ->type_name("FILE.json");
  app.add_option("--trace-steps", traceSteps, "Steps in the trace (default 20)")->type_name("N");
  app.add_option("--timeline", options.timeline,
                 "What each rank of a pipeline did in one step, stage by stage: FILE.html, the page that shoalc --timeline "
                 "simulates; FILE.json, a Chrome trace with the costs that shoalc --pipeline-costs reads")
      ->type_name("FILE.html|FILE.json");
  app.add_option("--timeline-step", timelineStep, "The step of --timeline (default: the last one)")->type_name("N");
  app.add_flag("--stop-on-nan", options.stopOnNan, "End the run when the loss is NaN or infinite");
  app.add_option("--inject-delay", delays,
                 "Let a rank sleep before each step, to see what that does to the others; once per rank")
      ->type_name("RANK:ms")
      ->allow_extra_args(false);
  app.add_option("--timeout", timeout,
                 "Seconds that a rank may wait for others before the job ends (default 600); 0: no limit")
      ->type_name("S");
  app.add_flag("--no-progress", options.noProgress,
               "Plain lines instead of a progress line on a terminal");
  GenerationFlags generation;
  generation.addTo(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    badInput(optionError(app, error), "; see --help");
  }
  if (help) {
    std::string file(argc > 0 ? argv[0] : "");
    file.erase(0, file.rfind('/') + 1);
    app.name(cat("shoal-run -n ", program.numPositions(), " ./", file.empty() ? std::string(program.name()) : file));
    for (const Misfit &misfit : findMisfits(program, evaluation))
      app.get_option(misfit.flag)->group(""); // not listed
    if (std::string why; isTraining(program) || !findTokenModel(program, why))
      generation.hideFrom(app);
    options.text = app.help() + "\n" + describe(program, evaluation, app.get_name());
    return options;
  }
  if (version) {
    options.text = cat("shoal ", SHOAL_VERSION, ", program '", program.name(), "'\n");
    return options;
  }
  checkPaths(app);
  if (app.count("--steps"))
    options.steps = wholeNumber("--steps", steps, 0);
  if (app.count("--epochs"))
    options.epochs = wholeNumber("--epochs", epochs, 0);
  if (app.count("--seed"))
    options.seed = wholeNumber("--seed", seed, 0);
  if (app.count("--save-every"))
    options.saveEvery = wholeNumber("--save-every", saveEvery, 1);
  if (app.count("--keep"))
    options.keep = wholeNumber("--keep", keep, 1);
  if (app.count("--eval-every"))
    options.evalEvery = wholeNumber("--eval-every", evalEvery, 1);
  if (app.count("--log-every"))
    options.logEvery = wholeNumber("--log-every", logEvery, 1);
  if (app.count("--threads"))
    options.threads = int(wholeNumber("--threads", threads, 1, 1024));
  if (localComm == "windows")
    options.localComm = LocalComm::Windows;
  else if (localComm == "mpi")
    options.localComm = LocalComm::Mpi;
  else if (app.count("--local-comm"))
    badInput("--local-comm must be windows or mpi, got: '", localComm, "'");
  if (app.count("--trace-steps"))
    options.traceSteps = wholeNumber("--trace-steps", traceSteps, 1, 100000);
  if (app.count("--timeline") && !options.timeline.ends_with(".html") && !options.timeline.ends_with(".json"))
    badInput("--timeline must name a file that ends in .html or .json, got: '", options.timeline, "'");
  if (app.count("--timeline-step"))
    options.timelineStep = wholeNumber("--timeline-step", timelineStep, 1);
  for (const std::string &delay : delays) {
    size_t colon = delay.find(':');
    if (colon == std::string::npos)
      badInput("--inject-delay expects RANK:ms, got: '", delay, "'");
    uint64_t rank = wholeNumber("--inject-delay: RANK", delay.substr(0, colon), 0, program.numPositions() - 1);
    uint64_t ms = wholeNumber("--inject-delay: ms", delay.substr(colon + 1), 0, 3'600'000);
    if (!options.delays.emplace(uint32_t(rank), double(ms)).second)
      badInput("--inject-delay names rank ", rank, " twice");
  }
  if (app.count("--timeout"))
    options.timeout = realNumber("--timeout", "a number of seconds", timeout, kMostTimeout);
  auto inputsOf = [](const Program &from) {
    std::vector<std::string> names;
    for (const Arg &arg : from.args())
      if (arg.kind == ArgKind::Input)
        names.emplace_back(from.str(arg.name));
    return names;
  };
  std::vector<std::string> outputNames;
  for (const Result &result : program.results())
    if (result.kind == ResultKind::Output)
      outputNames.emplace_back(program.str(result.name));
  checkApplicable(app, program, evaluation);
  options.data = pairs("--data", "input", data, inputsOf(program));
  if (evaluation)
    options.evalData = pairs("--eval-data", "evaluated input", evalData, inputsOf(*evaluation));
  bool generates = app.count("--generate") != 0;
  if (generates)
    outputNames = {kTokensOutput};
  options.outputs = pairs("--output", generates ? "generated output" : "output", outputs, outputNames);
  options.generation = generation.read(app, program, options.outputs);
  if (generates)
    options.outputs.clear();
  checkFiles(options);
  return options;
}

} // namespace shoal::rt
