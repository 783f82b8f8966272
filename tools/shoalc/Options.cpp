// Parses the command line with CLI11; the only file of the compiler that is built with exceptions.
#include "Options.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <map>
#include <sstream>

namespace shoal {
namespace {

/// `data=2,tensor=4` as axes in order.
std::string parseMesh(const std::string &text,
                      std::vector<std::pair<std::string, int64_t>> &mesh) {
  static const std::vector<std::string> known = {"replica", "data",    "tensor",
                                                 "pipe",    "context", "ulysses"};
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
    if (std::find(known.begin(), known.end(), name) == known.end())
      return "--mesh: axis must be one of replica, data, tensor, pipe, context, ulysses, got: '" +
             name + "'";
    for (const auto &axis : mesh)
      if (axis.first == name)
        return "--mesh: axis given twice: '" + name + "'";
    if (digits.empty() || digits.size() > 7 ||
        digits.find_first_not_of("0123456789") != std::string::npos || std::stoll(digits) < 1)
      return "--mesh: size of '" + name + "' must be a whole number from 1 to 9999999, got: '" +
             digits + "'";
    mesh.emplace_back(name, std::stoll(digits));
    devices *= mesh.back().second;
    if (devices > 1000000)
      return "--mesh: at most 1000000 devices, got: '" + text + "'";
  }
  return "";
}

CLI::Validator nonNegative() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        char *end = nullptr;
        double value = std::strtod(text.c_str(), &end);
        if (end == text.c_str() || *end || !std::isfinite(value) || value < 0)
          return "must be a finite number of at least 0, got: '" + text + "'";
        return "";
      },
      "NUMBER >= 0");
}

CLI::Validator stepCount() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        bool isNumber = !text.empty() && text.size() <= 15 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
        return isNumber ? "" : "must be a whole number below 10^15, got: '" + text + "'";
      },
      "STEPS");
}

/// Of decay rates: of momentum and of Adam's moments.
CLI::Validator fraction() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        char *end = nullptr;
        double value = std::strtod(text.c_str(), &end);
        if (end == text.c_str() || *end || !(value >= 0 && value < 1))
          return "must be in [0, 1), got: '" + text + "'";
        return "";
      },
      "NUMBER in [0, 1)");
}

} // namespace

std::optional<int> parseCommandLine(int argc, char **argv, CompilerOptions &options) {
  CLI::App app("shoalc compiles one training program, written for one device, into a program for "
               "many.\n\nThe model is an MLIR file (see examples/digits/digits.mlir), the plan is "
               "flags, the result is one executable:\n"
               "  shoalc model.mlir -o model --mesh data=4 --optimizer adam --lr 1e-3\n"
               "  shoal-run -n 4 ./model --data x=x.npy --data y=y.npy --epochs 3",
               "shoalc");
  app.set_version_flag("--version", "shoalc 0.1.0");
  app.add_option("FILE", options.input, "the model, L1 IR")->required()->type_name("FILE.mlir");
  app.add_option("-o", options.output, "where to write the result ('-' for text on stdout)")
      ->type_name("OUT");

  std::string mesh;
  app.add_option("--mesh", mesh,
                 "mesh axes (replica, data, tensor, pipe, context, ulysses) and sizes, the last fastest, as "
                 "data=2,tensor=2; without it the file's own dist.mesh, or one device")
      ->type_name("AXIS=SIZE,...")
      ->group("Plan");
  app.add_option("--bucket-mb", options.plan.bucketMb, "bytes of one gradient bucket, in MiB (25)")
      ->group("Plan")
      ->check(CLI::Validator(
          [](std::string &text) -> std::string {
            char *end = nullptr;
            double value = std::strtod(text.c_str(), &end);
            if (end == text.c_str() || *end || !(value > 0 && value <= 1e6))
              return "must be above 0 and at most 1e6, got: '" + text + "'";
            return "";
          },
          "MIB"));
  bool noOverlap = false;
  app.add_flag("--no-overlap", noOverlap, "communicate after the backward pass, not during it")
      ->group("Plan");
  app.add_flag("--verify-plan", options.verifyPlan,
               "run the plan and the one-device program in the reference interpreter and compare "
               "every value; slow, for small models")
      ->group("Plan");

  PlanOptions &plan = options.plan;
  app.add_option("--mode", plan.mode, "train; infer: only the outputs; eval, with --emit llvm or before: the evaluation step that "
                 "an executable of train brings along (train)")
      ->check(CLI::IsMember({"train", "infer", "eval"}))
      ->group("Program");
  app.add_option("--dtype", plan.dtype, "type of every float of the program: f32 or f64")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->group("Program");
  app.add_option("--optimizer", plan.optimizer, "sgd, adam or adamw (sgd)")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->group("Optimizer");
  app.add_option("--lr", plan.lr, "learning rate (0.01)")->check(nonNegative())->group("Optimizer");
  auto *schedule =
      app.add_option("--lr-schedule", plan.lrSchedule,
                     "constant, linear or cosine: how the rate goes from step to step, reported as lr")
          ->check(CLI::IsMember({"constant", "linear", "cosine"}))
          ->group("Optimizer");
  app.add_option("--warmup-steps", plan.warmupSteps, "steps in which the rate rises to --lr (0)")
      ->check(stepCount())
      ->group("Optimizer");
  app.add_option("--decay-steps", plan.decaySteps,
                 "steps, with the warm-up, until the rate of linear or cosine is --min-lr")
      ->check(stepCount())
      ->group("Optimizer");
  app.add_option("--min-lr", plan.minLr, "rate after --decay-steps (0)")
      ->check(nonNegative())
      ->group("Optimizer");
  auto *momentum = app.add_option("--momentum", plan.momentum, "momentum of SGD (0)")
                       ->check(fraction())
                       ->group("Optimizer");
  app.add_flag("--nesterov", plan.nesterov, "Nesterov's form of SGD's momentum")->group("Optimizer");
  std::vector<double> betas;
  auto *betasOption = app.add_option("--betas", betas, "decay rates of Adam's moments (0.9,0.999)")
                          ->delimiter(',')
                          ->expected(2)
                          ->type_name("B1,B2")
                          ->check(fraction())
                          ->group("Optimizer");
  auto *eps = app.add_option("--eps", plan.eps, "Adam's epsilon (1e-8)")
                  ->check(nonNegative())
                  ->group("Optimizer");
  app.add_option("--weight-decay", plan.weightDecay,
                 "L2 for sgd and adam, decoupled for adamw (0)")
      ->check(nonNegative())
      ->group("Optimizer");
  auto *decay = app.add_option("--decay", plan.decay,
                               "which parameters decay: all, or matrices (rank 2 and more) (all)")
                    ->check(CLI::IsMember({"all", "matrices"}))
                    ->group("Optimizer");
  app.add_option("--clip-grad-norm", plan.clipGradNorm,
                 "scale gradients so that their global norm is at most this")
      ->check(nonNegative())
      ->group("Optimizer");
  app.add_flag("--grad-norm", plan.gradNorm, "report the global norm of the gradients each step")
      ->group("Optimizer");

  std::string target = "cpu";
  app.add_option("--target", target, "cpu (cpu)")->check(CLI::IsMember({"cpu"}))->group("Output");
  app.add_option("--cpu", options.cpu, "CPU to generate code for (this machine's)")
      ->type_name("NAME")
      ->group("Output");
  app.add_option("--gpu-arch", options.gpuArch, "GPU to generate PTX for (sm_80)")
      ->type_name("NAME")
      ->group("Output");
  std::map<std::string, Emit> kinds = {{"global", Emit::Global}, {"local", Emit::Local},
                                       {"exec", Emit::Exec},     {"llvm", Emit::LLVM},
                                       {"ptx", Emit::PTX},       {"obj", Emit::Object},
                                       {"exe", Emit::Executable}};
  std::string emit = "exe";
  app.add_option("--emit", emit,
                 "global: annotated L1; local: one device's program; exec: the rank program; llvm: "
                 "kernels as LLVM IR; ptx: kernels for a GPU, as text; obj: the payload, a shared object of kernels and table; exe: the executable (exe)")
      ->check(CLI::IsMember({"global", "local", "exec", "llvm", "ptx", "obj", "exe"}))
      ->group("Output");
  app.add_option("--report", options.report,
                 "write the promised bytes and collectives per rank as JSON")
      ->type_name("FILE.json")
      ->group("Output");
  app.add_option("--runtime", options.runtime,
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
    return fail(error.what());
  }

  if (!mesh.empty() || app.count("--mesh"))
    if (std::string error = parseMesh(mesh, options.mesh); !error.empty())
      return fail(error);
  options.emit = kinds.at(emit);
  bool binary = options.emit == Emit::Object || options.emit == Emit::Executable;
  if (options.output.empty()) {
    if (binary)
      return fail("-o OUT is needed with --emit " + emit);
    options.output = "-";
  }
  if (options.output == "-" && binary)
    return fail("--emit " + emit + " writes a binary: -o must name a file");
  bool adam = plan.optimizer != "sgd";
  if (adam && momentum->count())
    return fail("--momentum belongs to --optimizer sgd, got: " + plan.optimizer);
  if (plan.nesterov && plan.momentum == 0)
    return fail("--nesterov needs --momentum above 0");
  if (!adam && (betasOption->count() || eps->count()))
    return fail("--betas and --eps belong to --optimizer adam or adamw, got: sgd");
  if (decay->count() && plan.weightDecay == 0)
    return fail("--decay needs --weight-decay above 0");
  if (app.count("--clip-grad-norm") && plan.clipGradNorm == 0)
    return fail("--clip-grad-norm must be above 0");
  if (!schedule->count())
    for (const char *flag : {"--warmup-steps", "--decay-steps", "--min-lr"})
      if (app.count(flag))
        return fail(std::string(flag) + " needs --lr-schedule");
  if (plan.lrSchedule == "constant")
    for (const char *flag : {"--decay-steps", "--min-lr"})
      if (app.count(flag))
        return fail(std::string(flag) + " belongs to --lr-schedule linear or cosine, got: constant");
  if (plan.lrSchedule == "linear" || plan.lrSchedule == "cosine") {
    if (!app.count("--decay-steps"))
      return fail("--lr-schedule " + plan.lrSchedule + " needs --decay-steps");
    if (plan.decaySteps <= plan.warmupSteps)
      return fail("--decay-steps counts the warm-up and must be above --warmup-steps, " +
                  std::to_string(plan.warmupSteps) + ", got: " + std::to_string(plan.decaySteps));
    if (plan.minLr > plan.lr) {
      std::ostringstream text;
      text << "--min-lr must be at most --lr, " << plan.lr << ", got: " << plan.minLr;
      return fail(text.str());
    }
  }
  if (plan.mode == "eval" && binary)
    return fail("--mode eval needs --emit global, local, exec or llvm, got: " + emit +
                "; the executable of --mode train evaluates with --eval-data");
  if (plan.mode == "infer")
    for (const char *flag : {"--optimizer", "--lr", "--lr-schedule", "--momentum", "--nesterov", "--betas", "--eps",
                             "--weight-decay", "--decay", "--clip-grad-norm", "--grad-norm",
                             "--bucket-mb", "--no-overlap"})
      if (app.count(flag))
        return fail(std::string(flag) + " belongs to --mode train");
  for (const char *flag : {"--mode", "--dtype", "--optimizer", "--lr", "--lr-schedule", "--momentum", "--nesterov", "--betas", "--eps",
                           "--weight-decay", "--decay", "--clip-grad-norm", "--grad-norm",
                           "--bucket-mb", "--verify-plan"})
    if (app.count(flag))
      options.planFlags.push_back(flag);
  bool isText = options.emit == Emit::Global || options.emit == Emit::Local || options.emit == Emit::Exec;
  if (isText && app.count("--cpu"))
    return fail("--cpu needs --emit llvm or later, got: " + emit);
  if (options.emit == Emit::PTX && app.count("--cpu"))
    return fail("--cpu means nothing to --emit ptx, which is for the GPU that --gpu-arch names");
  if (options.emit != Emit::PTX && app.count("--gpu-arch"))
    return fail("--gpu-arch belongs to --emit ptx, got: " + emit);
  if (options.emit != Emit::Executable && app.count("--runtime"))
    return fail("--runtime belongs to --emit exe, got: " + emit);
  if (app.count("--bucket-mb") && !options.mesh.empty() &&
      std::none_of(options.mesh.begin(), options.mesh.end(),
                   [](const auto &axis) { return axis.first == "data"; }))
    return fail("--bucket-mb sizes gradient buckets over mesh axis 'data', which --mesh lacks: " + mesh);
  if (!options.report.empty() &&
      (options.emit == Emit::Global || options.emit == Emit::Local))
    return fail("--report needs --emit exec or later, got: " + emit);
  if (!options.report.empty() && options.report == options.output)
    return fail("-o and --report name the same file: " + options.report);
  if (options.verifyPlan && options.emit == Emit::Global)
    return fail("--verify-plan needs --emit local or later, got: global");
  if (betas.size() == 2) {
    plan.beta1 = betas[0];
    plan.beta2 = betas[1];
  }
  plan.overlap = !noOverlap;
  if (options.emit == Emit::PTX)
    plan.target = "cuda";
  return std::nullopt;
}

} // namespace shoal
