// The compiler as a function: what it makes of a model in memory, and how it says no.
#include "shoal/Driver/Driver.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Pipelines/Pipelines.h"

#include "mlir/IR/ExtensibleDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace shoal;

namespace {

constexpr const char *kModel = R"(
func.func @model(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<8x2xf32> {nn.output = "y"}) {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.reduce mean %0 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
  return %1, %0 : tensor<f32>, tensor<8x2xf32>
}
)";

constexpr const char *kLocal = R"(
dist.mesh @mesh <["x"=2]>
func.func @step(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %0 = dist.all_reduce {"x"} sum %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
)";

class DriverTest : public testing::Test {
protected:
  DriverTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<dist::DistDialect>();
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
    options.name = "model.mlir";
  }

  Outcome compileText(const char *text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context, false));
    EXPECT_TRUE(module) << messages;
    return module ? compile(*module, options, output) : Outcome::InputWrong;
  }

  mlir::MLIRContext context;
  CompilerOptions options;
  CompilerOutput output;
  std::string messages;
};

const PlanOption *find(llvm::StringRef name) {
  return llvm::find_if(getPlanOptions(), [&](const PlanOption &row) { return row.name == name; });
}

bool contains(const std::string &text, llvm::StringRef part) { return llvm::StringRef(text).contains(part); }

TEST_F(DriverTest, GoesAsFarAsItIsAskedTo) {
  options.mesh = {{"data", 2}};
  options.emit = Emit::Global;
  EXPECT_EQ(compileText(kModel), Outcome::Success) << messages;
  EXPECT_TRUE(contains(output.text, "dist.sharding"));
  EXPECT_FALSE(contains(output.text, "dist.all_reduce"));
  options.emit = Emit::Local;
  EXPECT_EQ(compileText(kModel), Outcome::Success) << messages;
  EXPECT_TRUE(contains(output.text, "dist.all_reduce"));
  EXPECT_TRUE(output.report.empty());
  options.emit = Emit::Exec;
  options.report = ReportFormat::Json;
  options.verifyPlan = true;
  EXPECT_EQ(compileText(kModel), Outcome::Success) << messages;
  EXPECT_TRUE(contains(output.text, "exec.program"));
  EXPECT_TRUE(contains(output.report, "\"collectives\""));
  EXPECT_TRUE(contains(output.report, "\"plan\": \"zero 0, optimizer sgd, lr 0.01, dtype as in the model\""));
}

/// An op counts how often it is verified: where levels meet, or behind every pass.
TEST_F(DriverTest, OpsAreVerifiedBehindEveryPassWhereThatIsAskedFor) {
  int count = 0;
  auto *dialect = context.getOrLoadDynamicDialect("test", [](mlir::DynamicDialect *) {});
  dialect->registerDynamicOp(mlir::DynamicOpDefinition::get(
      "counted", dialect, [&](mlir::Operation *) { return ++count, mlir::success(); },
      [](mlir::Operation *) { return mlir::success(); }));
  std::string text = std::string(kModel) + "\"test.counted\"() : () -> ()\n";
  options.mesh = {{"data", 2}};
  options.emit = Emit::Global;
  int counts[2] = {};
  for (bool each : {false, true}) {
    options.verifyEach = each;
    count = 0;
    EXPECT_EQ(compileText(text.c_str()), Outcome::Success) << messages;
    counts[each] = count;
  }
  // The file itself and the contract of L1.
  EXPECT_EQ(counts[false], 2);
  EXPECT_GT(counts[true], 5);
}

/// The border of a level is where invalid IR is found.
TEST_F(DriverTest, ContractPassesVerifyTheOps) {
  constexpr const char *kInvalid = R"(
    func.func @types_differ(%x: tensor<4xf32>) -> tensor<8xf32> {
      %0 = "nn.relu"(%x) : (tensor<4xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    })";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kInvalid, mlir::ParserConfig(&context, false));
  ASSERT_TRUE(module) << messages;
  for (auto create : {dist::createVerifyGlobalPass, dist::createVerifyLocalPass, pipe::createVerifyPass,
                      exec::createVerifyPass}) {
    mlir::PassManager pm(&context);
    pm.enableVerifier(false);
    pm.addPass(create());
    messages.clear();
    EXPECT_TRUE(failed(pm.run(*module)));
    EXPECT_TRUE(contains(messages, "'nn.relu' op")) << messages;
  }
}

TEST_F(DriverTest, ThePageNamesTheFileAndTheFlags) {
  options.mesh = {{"data", 2}};
  options.emit = Emit::Exec;
  options.report = ReportFormat::Html;
  options.plan.optimize.optimizer = "adam";
  options.plan.optimize.beta1 = 0.5;
  options.plan.overlap = false;
  options.given = {find("optimizer"), find("beta1"), find("beta2"), find("overlap")};
  EXPECT_EQ(compileText(kModel), Outcome::Success) << messages;
  EXPECT_TRUE(llvm::StringRef(output.report).starts_with("<!DOCTYPE html>"));
  for (const char *text : {"model.mlir", "--optimizer adam<", "--betas 0.5,0.999<", "--no-overlap<", "data=2"})
    EXPECT_TRUE(contains(output.report, text)) << text;
}

TEST_F(DriverTest, EvaluationAndInferenceUpdateNothing) {
  options.emit = Emit::Local;
  for (const char *mode : {"eval", "infer"}) {
    options.plan.mode = mode;
    EXPECT_EQ(compileText(kModel), Outcome::Success) << messages;
    EXPECT_FALSE(contains(output.text, "nn.updates")) << mode;
  }
}

TEST_F(DriverTest, AnAxisThatShardsNothingIsRefused) {
  options.mesh = {{"data", 2}, {"tensor", 3}};
  EXPECT_EQ(compileText(kModel), Outcome::InputWrong);
  EXPECT_TRUE(contains(messages, "mesh axis 'tensor' of size 3 shards nothing")) << messages;
}

TEST_F(DriverTest, AnOptionWithoutItsAxisIsRefused) {
  options.mesh = {{"tensor", 2}};
  options.given = {find("zero")};
  options.plan.zero = 1;
  EXPECT_EQ(compileText(kModel), Outcome::InputWrong);
  EXPECT_TRUE(contains(messages, "--zero acts over mesh axis 'data', which the mesh lacks")) << messages;
}

TEST_F(DriverTest, BucketsNeedGradientsThatAreSummed) {
  options.given = {find("bucket-mb")};
  for (const char *axis : {"replica", "data", "context", "ulysses"}) {
    options.mesh = {{axis, 1}};
    messages.clear();
    compileText(kModel);
    EXPECT_FALSE(contains(messages, "--bucket-mb")) << messages;
  }
  options.mesh = {{"tensor", 2}};
  EXPECT_EQ(compileText(kModel), Outcome::InputWrong);
  EXPECT_TRUE(contains(messages, "--bucket-mb acts on gradients that are summed over ranks")) << messages;
  messages.clear();
  options.plan.tensorParallel = options.plan.sequenceParallel = true;
  compileText(kModel);
  EXPECT_FALSE(contains(messages, "--bucket-mb")) << messages;
}

TEST_F(DriverTest, WhatActsOverAMeshIsRefusedWithoutOne) {
  options.emit = Emit::Local;
  for (const PlanOption &row : getPlanOptions()) {
    if (!row.ofMesh())
      continue;
    options.given = {&row};
    messages.clear();
    bool isOff = row.isOff(options.plan);
    EXPECT_EQ(compileText(kModel), isOff ? Outcome::Success : Outcome::InputWrong) << row.name.str();
    EXPECT_NE(contains(messages, row.getFlag() + " acts over a mesh: give --mesh"), isOff) << messages;
  }
  options.given = {find("zero")};
  EXPECT_TRUE(options.given.front()->isOff(options.plan));
  options.plan.zero = 1;
  EXPECT_EQ(compileText(kModel), Outcome::InputWrong);
}

TEST_F(DriverTest, ALocalProgramIsItsOwnPlan) {
  options.emit = Emit::Exec;
  options.given = {find("overlap")};
  options.plan.overlap = false;
  EXPECT_EQ(compileText(kLocal), Outcome::Success) << messages;
  for (const PlanOption &row : getPlanOptions()) {
    if (!row.plansModel())
      continue;
    options.given = {&row};
    messages.clear();
    EXPECT_EQ(compileText(kLocal), Outcome::InputWrong) << row.name.str();
    EXPECT_TRUE(contains(messages, row.getFlag() + " plans a model (L1), but 'model.mlir' is a local program (L2)"))
        << messages;
  }
  options.given.clear();
  options.mesh = {{"data", 4}};
  EXPECT_EQ(compileText(kLocal), Outcome::InputWrong);
  EXPECT_TRUE(contains(messages, "'model.mlir' is a local program (L2), written for its own mesh "
                                 "#dist.mesh<[\"x\"=2]>"))
      << messages;
}

} // namespace
