// Parses the command line with CLI11; the only file of the compiler that is built with exceptions. What plans
// the program comes from the table of plan options.
#include "Options.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Support/Files.h"

#include "shoal-rt/option_error.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <map>
#include <sstream>

namespace shoal {
namespace {

/// The names that an axis of --mesh may have.
std::string listAxes() {
  std::string names;
  for (const dist::KnownAxis &axis : dist::getKnownAxes())
    names += (names.empty() ? "" : ", ") + axis.name.str();
  return names;
}

bool isKnownAxis(const std::string &name) {
  return llvm::any_of(dist::getKnownAxes(), [&](const dist::KnownAxis &axis) { return axis.name == name; });
}

/// What --emit takes, in the order in which --help tells it.
struct EmitChoice {
  const char *name;
  Emit emit;
  const char *makes;
};
constexpr EmitChoice kEmits[] = {
    {"global", Emit::Global, "annotated L1"},
    {"local", Emit::Local, "one device's program"},
    {"exec", Emit::Exec, "the rank program"},
    {"llvm", Emit::LLVM, "kernels as LLVM IR"},
    {"ptx", Emit::PTX, "kernels for a GPU, as text"},
    {"obj", Emit::Object, "the payload, a shared object of kernels and table"},
    {"exe", Emit::Executable, "the executable"},
};

/// `data=2,tensor=4` as axes in order.
std::string parseMesh(const std::string &text,
                      MeshAxes &mesh) {
  std::stringstream stream(text);
  std::string item;
  if (text.empty() || text.back() == ',')
    return "--mesh: expected AXIS=SIZE, got: '" + text + "'";
  int64_t devices = 1;
  while (std::getline(stream, item, ',')) {
    size_t equal = item.find('=');
    if (equal == std::string::npos || equal == 0)
      return "--mesh: expected AXIS=SIZE, got: '" + item + "'";
    std::string name = item.substr(0, equal), digits = item.substr(equal + 1);
    if (!isKnownAxis(name))
      return "--mesh: axis must be one of " + listAxes() + ", got: '" + name + "'";
    for (const auto &axis : mesh)
      if (axis.first == name)
        return "--mesh: axis given twice: '" + name + "'";
    if (digits.empty() || digits.size() > 7 ||
        digits.find_first_not_of("0123456789") != std::string::npos || std::stoll(digits) < 1)
      return "--mesh: size of '" + name + "' must be a whole number from 1 to 9999999, got: '" +
             digits + "'";
    mesh.emplace_back(name, std::stoll(digits));
    devices *= mesh.back().second;
    if (devices > dist::kMaxDevices)
      return "--mesh: at most " + std::to_string(dist::kMaxDevices) + " devices, got: '" + text + "'";
  }
  return "";
}

/// The rule of a row, as CLI11 asks for it.
CLI::Validator toValidator(const NumberRule &rule) {
  return CLI::Validator(
      [&rule](std::string &text) -> std::string {
        char *end = nullptr;
        double value = std::strtod(text.c_str(), &end);
        if (end == text.c_str() || *end || !rule.holds(value))
          return "must be " + rule.says.str() + ", got: '" + text + "'";
        return "";
      },
      rule.shows.str());
}

std::string toText(const std::string &value) { return value; }
std::string toText(double value) { return shortestDigits(value); }
std::string toText(int64_t value) { return std::to_string(value); }

/// The rows of the table as options of the command line. Their values land in the plan itself.
class PlanFlags {
public:
  PlanFlags(CLI::App &app, PlanOptions &plan) {
    for (const PlanOption &row : getPlanOptions())
      if (!row.group.empty())
        std::visit([&](const auto &access) { add(app, row, access(plan)); }, row.member);
  }

  /// Gives flags of several values to their members. Returns the rows that were given.
  std::vector<const PlanOption *> finish() const {
    std::vector<const PlanOption *> given;
    for (const auto &[row, option] : options)
      if (option->count())
        given.push_back(row);
    for (const auto &[flag, tuple] : tuples)
      for (size_t i = 0; i < tuple.values.size(); ++i)
        *tuple.members[i] = tuple.values[i];
    return given;
  }

private:
  struct Tuple {
    CLI::Option *option = nullptr;
    std::vector<double> values;
    std::vector<double *> members;
    std::string names, defaults;
  };

  void add(CLI::App &app, const PlanOption &row, bool &value) {
    // A flag changes what holds without it.
    bool set = !value;
    auto *option = app.add_flag_callback(
        row.getFlag(), [&value, set] { value = set; }, (set ? "" : "do not ") + row.help.str());
    options.emplace_back(&row, option->group(row.group.str()));
  }

  template <typename T> void add(CLI::App &app, const PlanOption &row, T &value) {
    std::string help = row.help.str();
    if (!row.isOffByDefault())
      help += " (" + toText(value) + ")";
    auto *option = app.add_option(row.getFlag(), value, help)->group(row.group.str());
    if (row.rule)
      option->check(toValidator(*row.rule));
    std::vector<std::string> choices(row.choices.begin(), row.choices.end());
    if (!choices.empty() && row.note.empty())
      option->check(CLI::IsMember(choices));
    else if (!choices.empty())
      option->check(CLI::Validator(
          [&row](std::string &text) { return findChoiceFault(row.choices, text, row.note); },
          CLI::detail::generate_set(choices)));
    options.emplace_back(&row, option);
  }

  void add(CLI::App &app, const PlanOption &row, double &value) {
    if (row.flag.empty())
      return add<double>(app, row, value);
    Tuple &tuple = tuples[row.flag.str()];
    tuple.members.push_back(&value);
    const char *separator = tuple.members.size() > 1 ? "," : "";
    tuple.names += separator + row.name.upper();
    tuple.defaults += separator + toText(value);
    if (!tuple.option)
      tuple.option = app.add_option(row.getFlag(), tuple.values)
                         ->delimiter(',')
                         ->check(toValidator(*row.rule))
                         ->group(row.group.str());
    tuple.option->expected(int(tuple.members.size()))
        ->type_name(tuple.names)
        ->description(row.help.str() + " (" + tuple.defaults + ")");
    options.emplace_back(&row, tuple.option);
  }

  // A list has no flag: shoalc takes its axes from the mesh.
  void add(CLI::App &, const PlanOption &, std::vector<std::string> &) {}

  std::vector<std::pair<const PlanOption *, CLI::Option *>> options;
  std::map<std::string, Tuple> tuples;
};

/// The pipelines that --emit runs.
unsigned getStages(Emit emit) {
  return emit == Emit::Global ? kToGlobal : emit == Emit::Local ? kToGlobal | kToLocal : kToGlobal | kToLocal | kToExec;
}

/// What the name of a report's file asks for.
ReportFormat findFormat(llvm::StringRef file) {
  return file.ends_with(".json")   ? ReportFormat::Json
         : file.ends_with(".html") ? ReportFormat::Html
                                   : ReportFormat::None;
}

} // namespace

std::optional<int> parseCommandLine(int argc, char **argv, CommandLine &line) {
  CLI::App app("shoalc compiles one training program, written for one device, into a program for "
               "many.\n\nThe model is an MLIR file, the plan is flags, the result is one executable:\n"
               "  shoalc examples/digits/digits.mlir -o digits --mesh data=4 --optimizer adam --lr 1e-3\n"
               "  shoal-run -n 4 ./digits --data x=examples/digits/train_x.npy --data y=examples/digits/train_y.npy "
               "--epochs 3",
               "shoalc");
  CompilerOptions &options = line.compiler;
  app.set_version_flag("--version", "shoalc " SHOAL_VERSION);
  app.add_option("FILE", line.input, "the model, L1 IR, or a local program, L2 IR")
      ->required()
      ->type_name("FILE.mlir");
  app.add_option("-o", line.output,
                 "where to write the result ('-' for text on stdout); --explain, --verify-plan, --report and --timeline alone need none")
      ->type_name("OUT");

  std::string mesh;
  app.add_option("--mesh", mesh,
                 "mesh axes (" + listAxes() +
                     ") and sizes, the last fastest, as "
                     "data=2,tensor=2; without it the file's own dist.mesh, or one device; replica and data split the "
                 "batch, and --zero shards over data alone (hybrid sharding)")
      ->type_name("AXIS=SIZE,...")
      ->group("Plan");
  PlanFlags planFlags(app, options.plan);
  app.add_flag("--verify-plan", options.verifyPlan,
               "run the plan and the one-device program in the reference interpreter and compare "
               "every value; slow, for small models")
      ->group("Plan");

  const PlanOption &target = *llvm::find_if(getPlanOptions(), [](const PlanOption &row) { return row.name == "target"; });
  app.add_option("--target", options.plan.target, "cpu; cuda: as far as --emit ptx, which is for it anyway (cpu)")
      ->check(CLI::IsMember(std::vector<std::string>(target.choices.begin(), target.choices.end())))
      ->group("Output");
  app.add_option("--cpu", options.cpu, "CPU to generate code for (this machine's)")
      ->type_name("NAME")
      ->group("Output");
  app.add_option("--gpu-arch", options.gpuArch, "GPU to generate PTX for (sm_80)")
      ->type_name("NAME")
      ->group("Output");
  std::string emit = "exe", emitHelp;
  std::vector<std::string> emits;
  for (const EmitChoice &choice : kEmits) {
    emits.push_back(choice.name);
    emitHelp += (emitHelp.empty() ? "" : "; ") + emits.back() + ": " + choice.makes;
  }
  app.add_option("--emit", emit, emitHelp + " (" + emit + ")")
      ->check(CLI::IsMember(emits))
      ->group("Output");
  app.add_option("--report", line.report,
                 "what the compiler promises: FILE.json, bytes and collectives per rank as data; FILE.html, a page to "
                 "look at, with the program by layers, shardings, collectives and memory over the step")
      ->type_name("FILE.json|FILE.html")
      ->group("Output");
  app.add_option("--timeline", line.timeline,
                 "what each rank of a pipeline would do when: stages, micro-batches, messages, bubbles and stashes, "
                 "simulated; FILE.html, a page; FILE.json, a Chrome trace. ./OUT --timeline measures the same")
      ->type_name("FILE.html|FILE.json")
      ->group("Output");
  app.add_flag("--explain", options.explain,
               "print, for every collective, its bytes, the annotation that caused it, what runs beside it and what "
               "would remove it")
      ->group("Output");
  app.add_flag("--verify-each", options.verifyEach,
               "verify the IR behind every pass, and not only where its levels meet; for work on passes")
      ->group("Output");
  app.add_option("--runtime", line.runtime,
                 "the prelinked runtime executable (shoal-rt-main beside shoalc)")
      ->type_name("FILE")
      ->group("Output");

  auto fail = [](const std::string &message) {
    std::cerr << "shoalc: error: " << message << "\n";
    return 2;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return fail(rt::optionError(app, error));
  }

  for (const char *name : {"FILE", "-o", "--report", "--timeline", "--schedule-file", "--pipeline-costs", "--runtime",
                           "--cpu", "--gpu-arch"})
    if (app.count(name) && app.get_option(name)->as<std::string>().empty())
      return fail(std::string(name) + " must not be empty");
  if (!mesh.empty() || app.count("--mesh"))
    if (std::string error = parseMesh(mesh, options.mesh); !error.empty())
      return fail(error);
  // Who only asks is told, and nothing is written.
  bool isQuestion = line.output.empty() && !app.count("--emit") &&
                    (options.explain || options.verifyPlan || !line.report.empty() || !line.timeline.empty());
  if (isQuestion)
    emit = line.report.empty() && !options.verifyPlan && !options.explain ? "local" : "exec"; // a timeline needs no more
  options.emit = llvm::find_if(kEmits, [&](const EmitChoice &choice) { return choice.name == emit; })->emit;
  bool binary = options.emit == Emit::Object || options.emit == Emit::Executable;
  if (line.output.empty() && !isQuestion) {
    if (binary)
      return fail("-o OUT is needed with --emit " + emit);
    line.output = "-";
  }
  if (line.output == "-" && binary)
    return fail("--emit " + emit + " writes a binary: -o must name a file");
  options.given = planFlags.finish();
  bool isForGPU = options.plan.target == "cuda" || options.emit == Emit::PTX;
  if (isForGPU && (binary || options.emit == Emit::LLVM))
    return fail("--target cuda goes as far as --emit ptx, got: " + emit);
  if (options.emit == Emit::PTX && app.count("--target") && options.plan.target == "cpu")
    return fail("--emit ptx is for --target cuda, got: cpu");
  if (!options.plan.offload.empty() && !isForGPU)
    return fail("--offload moves state from a device to its host, which on --target cpu have one memory; it needs "
                "--target cuda");
  if (std::string fault = findPlanFault(options.plan, options.given,
                                        [](const PlanOption &option) { return option.getFlag(); });
      !fault.empty())
    return fail(fault);
  for (const PlanOption *option : options.given)
    if (!(option->stages & getStages(options.emit)))
      return fail(option->getFlag() + " needs --emit " + (option->stages & kToLocal ? "local" : "exec") +
                  " or later, got: " + emit);
  if (options.plan.mode == "eval" && binary)
    return fail("--mode eval needs --emit global, local, exec or llvm, got: " + emit +
                "; the executable of --mode train evaluates with --eval-data");
  bool isText = options.emit == Emit::Global || options.emit == Emit::Local || options.emit == Emit::Exec;
  if (isText && app.count("--cpu"))
    return fail("--cpu needs --emit llvm or later, got: " + emit);
  if (options.emit == Emit::PTX && app.count("--cpu"))
    return fail("--cpu means nothing to --emit ptx, which is for the GPU that --gpu-arch names");
  if (options.emit != Emit::PTX && app.count("--gpu-arch"))
    return fail("--gpu-arch belongs to --emit ptx, got: " + emit);
  if (options.emit != Emit::Executable && app.count("--runtime"))
    return fail("--runtime belongs to --emit exe, got: " + emit);
  if (!line.report.empty() &&
      (options.emit == Emit::Global || options.emit == Emit::Local))
    return fail("--report needs --emit exec or later, got: " + emit);
  std::vector<std::pair<std::string, std::string>> outputs; // flag and file
  for (auto [flag, file] : {std::pair("-o", &line.output), {"--report", &line.report}, {"--timeline", &line.timeline}})
    if (!file->empty() && *file != "-") {
      for (const auto &[other, path] : outputs)
        if (isSameFile(path, *file))
          return fail(other + " and " + flag + " name the same file: " + *file);
      outputs.push_back({flag, *file});
    }
  if (!line.report.empty() && findFormat(line.report) == ReportFormat::None)
    return fail("--report must name a file that ends in .json or .html, got: '" + line.report + "'");
  if (!line.timeline.empty() && options.emit == Emit::Global)
    return fail("--timeline needs --emit local or later, got: global");
  if (!line.timeline.empty() && findFormat(line.timeline) == ReportFormat::None)
    return fail("--timeline must name a file that ends in .html or .json, got: '" + line.timeline + "'");
  if (options.explain && options.emit == Emit::Global)
    return fail("--explain needs --emit local or later, got: global");
  if (options.explain && line.output == "-")
    return fail("--explain writes to stdout: -o must name a file");
  if (options.verifyPlan && options.emit == Emit::Global)
    return fail("--verify-plan needs --emit local or later, got: global");
  options.name = line.input;
  options.report = findFormat(line.report);
  options.timeline = findFormat(line.timeline);
  return std::nullopt;
}

} // namespace shoal
