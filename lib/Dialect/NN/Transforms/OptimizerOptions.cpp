// The table of the optimizer's options, and the rules that hold between them.
#include "shoal/Dialect/NN/Transforms/OptimizerOptions.h"

#include <cmath>

namespace shoal::nn {
namespace {

using Options = OptimizePassOptions;

const NumberRule kNotNegative = {"a finite number of at least 0", "NUMBER >= 0",
                                 [](double value) { return std::isfinite(value) && value >= 0; }};
const NumberRule kPositive = {"above 0 and finite", "NUMBER > 0",
                              [](double value) { return std::isfinite(value) && value > 0; }};
/// Of decay rates: of momentum and of Adam's moments.
const NumberRule kFraction = {"in [0, 1)", "NUMBER in [0, 1)",
                              [](double value) { return value >= 0 && value < 1; }};
/// Exact as f64, in which the rate is computed.
const NumberRule kSteps = {"a whole number below 10^15", "STEPS",
                           [](double value) { return value >= 0 && value < 1e15; }};
const NumberRule kSomeSteps = {"a whole number below 10^15 and above 0", "STEPS",
                               [](double value) { return value > 0 && value < 1e15; }};

constexpr llvm::StringRef kOptimizers[] = {"sgd", "adam", "adamw"};
constexpr llvm::StringRef kSchedules[] = {"constant", "linear", "cosine"};
constexpr llvm::StringRef kDecays[] = {"all", "matrices"};

template <auto Member> auto &get(Options &options) { return options.*Member; }

} // namespace

llvm::ArrayRef<OptionRow<Options>> getOptimizerOptions() {
  static const OptionRow<Options> rows[] = {
      {.name = "optimizer", .member = get<&Options::optimizer>, .help = "sgd, adam or adamw",
       .choices = kOptimizers},
      {.name = "lr", .member = get<&Options::lr>, .help = "learning rate", .rule = &kNotNegative},
      {.name = "lr-schedule", .member = get<&Options::lrSchedule>,
       .help = "constant, linear or cosine: how the rate goes from step to step, reported as lr",
       .choices = kSchedules},
      {.name = "warmup-steps", .member = get<&Options::warmupSteps>,
       .help = "steps in which the rate rises to lr", .rule = &kSteps},
      {.name = "decay-steps", .member = get<&Options::decaySteps>,
       .help = "steps, with the warm-up, until the rate of linear or cosine is min-lr", .rule = &kSomeSteps},
      {.name = "min-lr", .member = get<&Options::minLr>, .help = "rate after decay-steps",
       .rule = &kNotNegative},
      {.name = "momentum", .member = get<&Options::momentum>, .help = "momentum of sgd", .rule = &kFraction},
      {.name = "nesterov", .member = get<&Options::nesterov>, .help = "Nesterov's form of sgd's momentum"},
      {.name = "beta1", .member = get<&Options::beta1>, .help = "decay rates of Adam's moments",
       .rule = &kFraction, .flag = "betas"},
      {.name = "beta2", .member = get<&Options::beta2>, .help = "decay rates of Adam's moments",
       .rule = &kFraction, .flag = "betas"},
      {.name = "eps", .member = get<&Options::eps>, .help = "Adam's epsilon", .rule = &kNotNegative},
      {.name = "weight-decay", .member = get<&Options::weightDecay>,
       .help = "L2 for sgd and adam, decoupled for adamw", .rule = &kNotNegative},
      {.name = "decay", .member = get<&Options::decay>,
       .help = "which parameters decay: all, or matrices (rank 2 and more)", .choices = kDecays},
      {.name = "clip-grad-norm", .member = get<&Options::clipGradNorm>,
       .help = "scale gradients so that their global norm is at most this", .rule = &kPositive},
      {.name = "grad-norm", .member = get<&Options::gradNorm>,
       .help = "report the global norm of the gradients each step"},
  };
  return rows;
}

unsigned countStates(const Options &options) {
  if (options.optimizer == "sgd")
    return options.momentum != 0;
  return 2;
}

std::string findOptimizerFault(const Options &options, llvm::function_ref<bool(llvm::StringRef)> isGiven,
                               llvm::function_ref<std::string(llvm::StringRef)> spell) {
  for (const auto &row : getOptimizerOptions())
    if (std::string fault = row.findFault(options); !fault.empty())
      return spell(row.name) + " " + fault;

  auto belongs = [&](llvm::StringRef name, llvm::StringRef to, const char *which, const std::string &got) {
    return spell(name) + " belongs to " + spell(to) + " " + which + ", got: " + got;
  };
  bool isSgd = options.optimizer == "sgd";
  if (!isSgd && isGiven("momentum"))
    return belongs("momentum", "optimizer", "sgd", options.optimizer);
  if (options.nesterov && options.momentum == 0)
    return spell("nesterov") + " needs " + spell("momentum") + " above 0";
  if (isSgd)
    for (const char *name : {"beta1", "beta2", "eps"})
      if (isGiven(name))
        return belongs(name, "optimizer", "adam or adamw", options.optimizer);
  if (isGiven("decay") && options.weightDecay == 0)
    return spell("decay") + " needs " + spell("weight-decay") + " above 0";

  const std::string &schedule = options.lrSchedule;
  if (schedule == "none")
    for (const char *name : {"warmup-steps", "decay-steps", "min-lr"})
      if (isGiven(name))
        return spell(name) + " needs " + spell("lr-schedule");
  if (schedule == "constant")
    for (const char *name : {"decay-steps", "min-lr"})
      if (isGiven(name))
        return belongs(name, "lr-schedule", "linear or cosine", schedule);
  if (schedule == "linear" || schedule == "cosine") {
    if (options.decaySteps == 0)
      return spell("lr-schedule") + " " + schedule + " needs " + spell("decay-steps");
    if (options.decaySteps <= options.warmupSteps)
      return spell("decay-steps") + " counts the warm-up and must be above " + spell("warmup-steps") + ", " +
             std::to_string(options.warmupSteps) + ", got: " + std::to_string(options.decaySteps);
    if (options.minLr > options.lr)
      return spell("min-lr") + " must be at most " + spell("lr") + ", " + shortestDigits(options.lr) +
             ", got: " + shortestDigits(options.minLr);
  }
  return "";
}

std::string findOptimizerFault(const Options &options) {
  auto isGiven = [&](llvm::StringRef name) {
    for (const auto &row : getOptimizerOptions())
      if (row.name == name)
        return !row.isDefault(options);
    return false;
  };
  return findOptimizerFault(options, isGiven, [](llvm::StringRef name) { return name.str(); });
}

} // namespace shoal::nn
