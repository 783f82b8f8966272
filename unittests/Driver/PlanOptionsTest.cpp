// Every row of the table of plan options parses by both command lines and reaches its own member, and only
// that; values out of its range are refused by both, and by the pass that it is an option of.
#include "Options.h"

#include "shoal/Pipelines/Pipelines.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace shoal;

namespace {

/// Values that differ from the default; the first that the row takes is tried, and every one that it does not.
std::vector<std::string> candidates(const PlanOption &row) {
  return std::visit(
      [&](const auto &access) -> std::vector<std::string> {
        PlanOptions plan;
        using T = std::decay_t<decltype(access(plan))>;
        if constexpr (std::is_same_v<T, bool>)
          return {access(plan) ? "false" : "true"};
        else if constexpr (std::is_same_v<T, int64_t>)
          return {"7", "2", "-3"};
        else if constexpr (std::is_same_v<T, double>)
          return {"0.5", "-3", "nan"};
        else if constexpr (std::is_same_v<T, std::string>) {
          std::vector<std::string> values = {"nonsense"};
          for (llvm::StringRef choice : row.choices)
            if (choice != access(plan))
              values.push_back(choice.str());
          return values;
        }
        return {"u"};
      },
      row.member);
}

void assign(const PlanOption &row, PlanOptions &plan, const std::string &text) {
  std::visit(
      [&](const auto &access) {
        auto &value = access(plan);
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>)
          value = text == "true";
        else if constexpr (std::is_same_v<T, int64_t>)
          value = std::stoll(text);
        else if constexpr (std::is_same_v<T, double>)
          value = std::stod(text);
        else if constexpr (std::is_same_v<T, std::string>)
          value = text;
        else
          value = {text};
      },
      row.member);
}

bool takes(const PlanOption &row, const std::string &text) {
  PlanOptions plan;
  assign(row, plan, text);
  return row.findFault(plan).empty();
}

bool equal(const PlanOption &row, PlanOptions a, PlanOptions b) {
  return std::visit([&](const auto &access) { return access(a) == access(b); }, row.member);
}

/// What has to be given with an option, as textual pipelines write it.
const std::map<std::string, std::vector<std::pair<std::string, std::string>>> kCompanions = {
    {"beta1", {{"optimizer", "adam"}}},
    {"beta2", {{"optimizer", "adam"}}},
    {"eps", {{"optimizer", "adam"}}},
    {"nesterov", {{"momentum", "0.5"}}},
    {"decay", {{"weight-decay", "0.5"}}},
    {"grad-dtype", {{"dtype", "bf16"}}},
    {"warmup-steps", {{"lr-schedule", "constant"}}},
    {"decay-steps", {{"lr-schedule", "linear"}}},
    {"keep-gathered", {{"sequence-parallel", "true"}}},
    {"min-lr", {{"lr-schedule", "linear"}, {"decay-steps", "7"}, {"lr", "0.75"}}},
};

std::vector<std::pair<std::string, std::string>> companionsOf(const PlanOption &row, const std::string &value,
                                                              bool isText) {
  if (row.name == "offload" && !isText) // the target is another pipeline's
    return {{"target", "cuda"}};
  if (row.name == "lr-schedule" && value != "constant")
    return {{"decay-steps", "7"}};
  auto found = kCompanions.find(row.name.str());
  return found == kCompanions.end() ? std::vector<std::pair<std::string, std::string>>() : found->second;
}

const PlanOption &find(const std::string &name) {
  for (const PlanOption &row : getPlanOptions())
    if (row.name == name)
      return row;
  ADD_FAILURE() << "no row " << name;
  return getPlanOptions().front();
}

std::optional<PlanOptions> parseText(const PlanOption &row, const std::string &value) {
  std::string text = row.name.str() + "=" + value, fault;
  for (const auto &[name, other] : companionsOf(row, value, /*isText=*/true))
    text += " " + name + "=" + other;
  PipelineOptions options(row.stages);
  if (failed(options.parseFromString(text)))
    return std::nullopt;
  PlanOptions plan = options.get(fault);
  return fault.empty() ? std::optional(plan) : std::nullopt;
}

/// One option as words of shoalc's command line; a flag of several values gets all of its rows' values.
void addWords(std::vector<std::string> &words, const PlanOption &row, const std::string &value) {
  words.push_back(row.getFlag());
  if (value == "true" || value == "false")
    return;
  std::string joined;
  for (const PlanOption &other : getPlanOptions())
    if (!row.flag.empty() && other.flag == row.flag) {
      PlanOptions defaults;
      std::string own = shortestDigits(std::get<PlanOption::Access<double>>(other.member)(defaults));
      joined += (joined.empty() ? "" : ",") + (&other == &row ? value : own);
    }
  words.push_back(joined.empty() ? value : joined);
}

std::optional<CompilerOptions> parseFlags(const PlanOption &row, const std::string &value) {
  std::vector<std::string> words = {"shoalc", "model.mlir", "--emit", "exec"};
  addWords(words, row, value);
  for (const auto &[name, other] : companionsOf(row, value, /*isText=*/false))
    addWords(words, find(name), other);
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  CommandLine line;
  testing::internal::CaptureStderr();
  std::optional<int> code = parseCommandLine(int(words.size()), argv.data(), line);
  std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code.has_value(), !message.empty()) << message;
  return code ? std::nullopt : std::optional(line.compiler);
}

/// That of all rows only `row` and its companions have another value than the default.
void expectOnly(const PlanOption &row, const std::string &value, const PlanOptions &plan, bool isText) {
  PlanOptions wanted;
  if (isText)
    wanted.dataAxes.clear();
  assign(row, wanted, value);
  for (const auto &[name, other] : companionsOf(row, value, isText))
    assign(find(name), wanted, other);
  for (const PlanOption &other : getPlanOptions())
    if (!isText || (other.stages & row.stages))
      EXPECT_TRUE(equal(other, plan, wanted)) << other.name.str() << " after " << row.name.str() << "=" << value;
}

/// All tests of this program may run in one process.
void registerOnce() {
  static bool isRegistered = (registerAllPasses(), true);
  (void)isRegistered;
}

TEST(PlanOptions, RowsAreSoundAndTheirNamesTheirOwn) {
  std::set<std::string> names;
  for (const PlanOption &row : getPlanOptions()) {
    EXPECT_TRUE(names.insert(row.name.str()).second) << row.name.str();
    EXPECT_FALSE(row.help.empty()) << row.name.str();
    EXPECT_NE(row.stages & (kToGlobal | kToLocal | kToExec), 0u) << row.name.str();
    EXPECT_TRUE(row.findFault(PlanOptions()).empty()) << row.name.str();
  }
}

TEST(PlanOptions, EveryRowParsesInTextualPipelines) {
  for (const PlanOption &row : getPlanOptions()) {
    unsigned accepted = 0;
    for (const std::string &value : candidates(row)) {
      std::optional<PlanOptions> plan = parseText(row, value);
      ASSERT_EQ(plan.has_value(), takes(row, value)) << row.name.str() << "=" << value;
      if (plan)
        expectOnly(row, value, *plan, /*isText=*/true);
      accepted += plan.has_value();
    }
    EXPECT_GT(accepted, 0u) << row.name.str();
  }
}

TEST(PlanOptions, EveryRowParsesOnShoalcsCommandLine) {
  for (const PlanOption &row : getPlanOptions()) {
    if (row.group.empty())
      continue;
    unsigned accepted = 0;
    for (const std::string &value : candidates(row)) {
      std::optional<CompilerOptions> options = parseFlags(row, value);
      ASSERT_EQ(options.has_value(), takes(row, value)) << row.getFlag() << " " << value;
      if (!options)
        continue;
      ++accepted;
      expectOnly(row, value, options->plan, /*isText=*/false);
      EXPECT_TRUE(llvm::is_contained(options->given, &row)) << row.name.str();
    }
    EXPECT_GT(accepted, 0u) << row.name.str();
  }
}

TEST(PlanOptions, PipelinesTakeOnlyWhatActsInThem) {
  registerOnce();
  std::pair<const char *, unsigned> pipelines[] = {
      {"shoal-global", kToGlobal}, {"shoal-local", kToLocal}, {"shoal-exec", kToExec}};
  mlir::MLIRContext context;
  for (const auto &[name, stage] : pipelines)
    for (const PlanOption &row : getPlanOptions()) {
      std::string value;
      for (const std::string &candidate : candidates(row))
        if (value.empty() && takes(row, candidate))
          value = candidate;
      std::string text = name + ("{" + row.name.str()) + "=" + value;
      for (const auto &[other, its] : companionsOf(row, value, /*isText=*/true))
        text += " " + other + "=" + its;
      mlir::OpPassManager pm("builtin.module");
      std::string errors;
      llvm::raw_string_ostream stream(errors);
      testing::internal::CaptureStderr();
      bool isRight = succeeded(mlir::parsePassPipeline(text + "}", pm, stream));
      testing::internal::GetCapturedStderr();
      EXPECT_EQ(isRight, bool(row.stages & stage)) << text << ": " << errors;
    }
}

/// The pass checks a copy of its options (Optimize.cpp): one that the copy forgets would show here.
TEST(PlanOptions, TheOptimizersPassRefusesWhatItsTableDoes) {
  registerOnce();
  mlir::MLIRContext context;
  std::string message;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) { message += diagnostic.str(); });
  for (const auto &optimizerRow : nn::getOptimizerOptions()) {
    const PlanOption &row = find(optimizerRow.name.str());
    for (const std::string &value : candidates(row)) {
      if (takes(row, value))
        continue;
      message.clear();
      mlir::PassManager pm(&context);
      ASSERT_TRUE(succeeded(mlir::parsePassPipeline("nn-optimize{" + row.name.str() + "=" + value + "}", pm)));
      mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
      EXPECT_TRUE(failed(pm.run(*module))) << row.name.str() << "=" << value;
      EXPECT_TRUE(llvm::StringRef(message).starts_with((row.name + " must be ").str())) << message;
    }
  }
}

/// What a newcomer looks for is told though nobody chose it, and what cannot act is not.
TEST(PlanOptions, WordsOfThePlan) {
  PlanOptions plan;
  plan.dataAxes = {"data"};
  EXPECT_EQ(describePlan(plan, {}), "zero 0, optimizer sgd, lr 0.01, dtype as in the model");
  plan.zero = 3;
  plan.dtype = "bf16";
  plan.overlap = false;
  plan.optimize.optimizer = "adamw";
  plan.optimize.beta2 = 0.95;
  EXPECT_EQ(describePlan(plan, {&find("beta2"), &find("overlap"), &find("dtype"), &find("beta1")}),
            "zero 3, no-overlap, dtype bf16, optimizer adamw, lr 0.01, betas 0.9,0.95");
  plan.dataAxes = {};
  plan.modelAxes = {"tensor"};
  EXPECT_EQ(describePlan(plan, {&find("dtype")}), "dtype bf16, optimizer adamw, lr 0.01");
  plan.mode = "infer";
  EXPECT_EQ(describePlan(plan, {&find("dtype"), &find("mode")}), "mode infer, dtype bf16");
  // An order of backward passes is of a pipeline that has them, and not where a file has the order.
  plan = {};
  plan.dataAxes = {};
  plan.pipeRanks = 2;
  EXPECT_EQ(describePlan(plan, {}), "pipeline-schedule 1f1b, optimizer sgd, lr 0.01, dtype as in the model");
  plan.scheduleFile = "order.txt";
  EXPECT_EQ(describePlan(plan, {&find("schedule-file")}),
            "schedule-file order.txt, optimizer sgd, lr 0.01, dtype as in the model");
  plan.scheduleFile = "";
  plan.mode = "infer";
  EXPECT_EQ(describePlan(plan, {}), "dtype as in the model");
}

} // namespace
