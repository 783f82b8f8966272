// What a page is made of, against the promise of the same compilation: the curve of the arena ends at the promised
// peak, its classes at the promised bytes; layers, tensors and collectives are those of the program.
#include "shoal/Codegen/Emit.h"
#include "shoal/Dialect/Exec/IR/ArenaUse.h"
#include "shoal/Driver/Driver.h"
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Report/Page.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <set>

using namespace shoal;
using report::PageClass;

namespace {

// Three layers, of which the first two are equal but for their numbers, behind another one; sizes that four ranks do
// not divide.
constexpr const char *kModel = R"(
func.func @model(%x: tensor<6x5xf32> {nn.input = "x"}, %y: tensor<6x5xf32> {nn.input = "y"},
    %w0: tensor<5x5xf32> {nn.param = #nn.param<"l.0.w", init = kaiming_uniform>},
    %w1: tensor<5x5xf32> {nn.param = #nn.param<"l.1.w", init = kaiming_uniform>},
    %w2: tensor<5x5xf32> {nn.param = #nn.param<"l.2.w", init = kaiming_uniform>})
    -> (tensor<f32> {nn.loss}, tensor<6x5xf32> {nn.output = "z"}) {
  %h = nn.relu %x {nn.layer = "in"} : tensor<6x5xf32>
  %0 = nn.matmul %h, %w0 {nn.layer = "l.0"} : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  %1 = nn.relu %0 {nn.layer = "l.0"} : tensor<6x5xf32>
  %2 = nn.matmul %1, %w1 {nn.layer = "l.1"} : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  %3 = nn.relu %2 {nn.layer = "l.1"} : tensor<6x5xf32>
  %4 = nn.matmul %3, %w2 {nn.layer = "l.2"} : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  %loss = nn.mse_loss mean %4, %y : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<f32>
  return %loss, %4 : tensor<f32>, tensor<6x5xf32>
}
)";

constexpr const char *kLocal = R"(
dist.mesh @mesh <["x"=3]>
func.func @step(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<12xf32> {nn.output = "y"}) {
  %0 = dist.all_gather {"x"} dim = 0 %x {reason = "by hand"} : tensor<4xf32> -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
)";

// Two layers' weights in a bucket of which a rank has a part, as ZeRO-3 keeps them.
constexpr const char *kBucket = R"(
dist.mesh @mesh <["data"=2]>
func.func @step(%x: tensor<3x4xf32> {nn.input = "x", dist.global = #dist.global<0, tensor<6x4xf32>, <@mesh, [{"data"}, {}]>>},
    %p: tensor<5xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<1, tensor<10xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"l.0.w", init = ones>, tensor<4xf32>>, <#nn.param<"s", init = ones>, tensor<1xf32>>,
                                    <#nn.param<"l.1.w", init = ones>, tensor<4xf32>>]>})
    -> (tensor<f32> {nn.loss}, tensor<5xf32> {nn.updates = "bucket.0"},
        tensor<5xf32> {nn.grad = "bucket.0", dist.global = #dist.global<2, tensor<10xf32>, <@mesh, [{"data"}]>>,
                       dist.bucket = #dist.bucket<[<"l.0.w", tensor<4xf32>>, <"s", tensor<1xf32>>, <"l.1.w", tensor<4xf32>>]>}) {
  %all = dist.all_gather {"data"} dim = 0 %p {reason = "by hand"} : tensor<5xf32> -> tensor<10xf32>
  %w = dist.unpack %all[0:4] : (tensor<10xf32>) -> tensor<4xf32>
  %v = dist.unpack %all[5:9] : (tensor<10xf32>) -> tensor<4xf32>
  %rows = nn.reduce sum %x dims = [0] : tensor<3x4xf32> -> tensor<4xf32>
  %xw = nn.mul %rows, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xv = nn.mul %rows, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = nn.reduce sum %v dims = [0] : tensor<4xf32> -> tensor<f32>
  %rest = nn.constant dense<0.0> : tensor<2xf32>
  %packed = dist.pack %xw[0:4], %rest[0:1], %xv[0:4], %rest[1:2] group 0 at 0 : (tensor<4xf32>, tensor<2xf32>, tensor<4xf32>, tensor<2xf32>) -> tensor<10xf32>
  %g = dist.reduce_scatter {"data"} sum dim = 0 %packed {reason = "by hand"} : tensor<10xf32> -> tensor<5xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %new = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<5xf32>, tensor<f32>
  return %loss, %new, %g : tensor<f32>, tensor<5xf32>, tensor<5xf32>
}
)";

class PageTest : public testing::Test {
protected:
  PageTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<dist::DistDialect>();
    options.name = "model.mlir";
    options.plan.optimize.optimizer = "adam";
  }

  /// Compiles to L2, reads the page, goes on to L3.
  void read(const char *text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context, false));
    ASSERT_TRUE(module);
    options.emit = Emit::Local;
    CompilerOutput output;
    ASSERT_EQ(compile(*module, options, output), Outcome::Success);
    ASSERT_TRUE(succeeded(report::readLocal(*module, options.plan.overlap, page)));
    mlir::PassManager pm(&context);
    buildExecPipeline(pm, options.plan);
    ASSERT_TRUE(succeeded(pm.run(*module)));
    auto promised = codegen::emitReport(*module, "zero 3");
    ASSERT_TRUE(succeeded(promised));
    page.report = *promised;
    ASSERT_TRUE(succeeded(report::readProgram(*module, page)));
  }

  /// That the curve's maxima are the promise.
  void expectPromise() {
    ASSERT_FALSE(page.rows.empty());
    uint64_t most[report::kNumPageClasses] = {};
    for (const report::PageRow &row : page.rows)
      for (size_t i = 0; i < report::kNumPageClasses; ++i)
        most[i] = std::max(most[i], row.bytes[i]);
    const rt::BytesReport &bytes = page.report.ranks.front().bytes;
    EXPECT_EQ(most[size_t(PageClass::Params)], bytes.params);
    EXPECT_EQ(most[size_t(PageClass::Optimizer)], bytes.optimizer);
    EXPECT_EQ(most[size_t(PageClass::Grads)], bytes.grads);
    EXPECT_EQ(most[size_t(PageClass::Activations)], bytes.activations);
    EXPECT_EQ(most[size_t(PageClass::Workspace)], bytes.workspace);
    EXPECT_EQ(page.arena, bytes.peak);
    EXPECT_LE(page.rows[page.findPeak()].getTotal(), page.arena);
    int64_t end = 0; // of the highest buffer in use
    for (auto program : module->getOps<exec::ProgramOp>())
      for (const exec::ArenaUse &use : exec::measureArena(exec::PositionClasses(program)[0]))
        end = std::max(end, use.end);
    EXPECT_EQ(uint64_t(end), bytes.peak);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompilerOptions options;
  report::Page page;
};

const report::PageTensor *find(const report::Page &page, llvm::StringRef name) {
  for (const report::PageTensor &tensor : page.tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

TEST_F(PageTest, TheCurveEndsAtThePromisedPeak) {
  for (int64_t ranks : {1, 2, 4}) {
    page = {};
    options.mesh = {{"data", ranks}};
    read(kModel);
    expectPromise();
    EXPECT_EQ(page.mode, "train");
  }
}

TEST_F(PageTest, TheCurveOfAnInferenceProgramDoesToo) {
  options.plan.mode = "infer";
  options.mesh = {{"data", 2}};
  read(kModel);
  expectPromise();
  EXPECT_EQ(page.rows[page.findPeak()].bytes[size_t(PageClass::Grads)], 0u);
}

TEST_F(PageTest, EqualLayersAreOne) {
  options.mesh = {{"data", 2}};
  read(kModel);
  std::vector<std::string> titles;
  for (const report::PageLayer &layer : page.layers)
    titles.push_back(layer.title);
  // l.0 computes no gradient of its input, l.2 has no activation.
  EXPECT_EQ(titles,
            (std::vector<std::string>{"in", "l.0", "l.1", "l.2", "after the layers", "gradient buckets", "update"}));
  const report::PageLayer &middle = page.layers[2];
  ASSERT_EQ(middle.forward.size(), 2u);
  EXPECT_EQ(middle.forward[0].name, "matmul");
  EXPECT_EQ(middle.forward[0].arguments, "l.1.w");
  EXPECT_EQ(middle.forward[0].shape, "3×5 f32");
  EXPECT_EQ(middle.forward[1].name, "relu");
  EXPECT_EQ(llvm::count_if(middle.backward, [](const report::PageOp &op) { return op.name == "matmul"; }), 2);
  ASSERT_EQ(middle.update.size(), 1u);
  EXPECT_EQ(middle.update[0].name, "adam_update");

  page = {};
  options.plan.mode = "infer"; // without gradients the first two are equal
  read(kModel);
  ASSERT_EQ(page.layers.size(), 3u);
  EXPECT_EQ(page.layers[1].title, "l.0 and l.1");
  EXPECT_EQ(page.layers[1].names.size(), 2u);
  EXPECT_EQ(page.layers[1].forward[0].arguments, "l.*.w");
  EXPECT_EQ(page.layers[2].title, "l.2");
  ASSERT_TRUE(find(page, "z"));
  EXPECT_EQ(find(page, "z")->role, "output");
}

TEST_F(PageTest, ABucketTellsWhatItHolds) {
  read(kBucket);
  expectPromise();
  const report::PageTensor *bucket = find(page, "bucket.0");
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->holds, (std::vector<std::string>{"l.{0,1}.w", "s"}));
  ASSERT_EQ(bucket->dims.size(), 1u);
  EXPECT_EQ(bucket->dims[0].axes, std::vector<std::string>{"data"});
  // The model has three tensors of 9 elements; the tenth is padding.
  EXPECT_EQ(page.parameterTensors, 3u);
  EXPECT_EQ(page.parameters, 9u);
  EXPECT_NE(report::writeHtml(page).find("parameter; a bucket of l.{0,1}.w, s"), std::string::npos);
  // Its update is no part of the reduction.
  ASSERT_EQ(page.layers.back().title, "update");
  EXPECT_TRUE(
      llvm::any_of(page.layers.back().update, [](const report::PageOp &op) { return op.name == "sgd_update"; }));
}

// Whether a section has such an op; each with its arguments, so that none is told twice.
bool has(const report::Page &page, llvm::StringRef title, llvm::StringRef op, llvm::StringRef arguments = "") {
  for (const report::PageLayer &layer : page.layers)
    if (layer.title == title)
      for (const auto *ops : {&layer.forward, &layer.backward})
        for (const report::PageOp &it : *ops)
          if (it.name == op && it.arguments == arguments)
            return true;
  return false;
}

TEST_F(PageTest, OpsOutsideOfLayersAreInNone) {
  constexpr const char *kOutside = R"(
func.func @model(%x: tensor<6x5xf32> {nn.input = "x"},
    %w: tensor<5x5xf32> {nn.param = #nn.param<"w", init = kaiming_uniform>},
    %v: tensor<5x5xf32> {nn.param = #nn.param<"v", init = kaiming_uniform>},
    %u: tensor<5x5xf32> {nn.param = #nn.param<"u", init = kaiming_uniform>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.exp %x : tensor<6x5xf32>
  %1 = nn.matmul %0, %w {nn.layer = "l.0"} : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  %2 = nn.relu %1 {nn.layer = "l.0"} : tensor<6x5xf32>
  %3 = nn.matmul %2, %v : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  %4 = nn.tanh %3 {nn.layer = "l.1"} : tensor<6x5xf32>
  %5 = nn.matmul %4, %u : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  %loss = nn.reduce sum %5 dims = [0, 1] : tensor<6x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
)";
  for (int64_t ranks : {1, 4}) { // 4 ranks do not divide 6 rows: passes add masks
    page = {};
    options.mesh = {{"data", ranks}};
    read(kOutside);
    EXPECT_TRUE(has(page, "before the layers", "exp", "x")) << ranks;
    EXPECT_TRUE(has(page, "outside layers", "matmul", "v")) << ranks;
    EXPECT_TRUE(has(page, "after the layers", "matmul", "u")) << ranks;
    for (const report::PageLayer &layer : page.layers) {
      bool isLayer = !layer.names.empty();
      EXPECT_FALSE(isLayer && (has(page, layer.title, "matmul", "v") || has(page, layer.title, "matmul", "u")));
    }
  }
}

TEST_F(PageTest, TheHeadCountsTheModelUnderEveryPlan) {
  std::vector<std::pair<std::string, int64_t>> meshes[] = {{}, {{"data", 4}}, {{"data", 2}, {"tensor", 2}}};
  for (auto &mesh : meshes)
    for (int64_t zero : {0, 3})
      if (!mesh.empty() || zero == 0) {
        page = {};
        options.mesh = mesh;
        options.plan.zero = zero;
        options.plan.tensorParallel = mesh.size() > 1;
        // Tensors lie in several buckets, too.
        options.plan.bucketMb = 0.00002;
        read(kModel);
        EXPECT_EQ(page.parameterTensors, 3u);
        EXPECT_EQ(page.parameters, 75u);
      }
}

TEST_F(PageTest, TensorsTellTheirPaddingAndTheirCopies) {
  options.mesh = {{"data", 4}};
  read(kModel);
  const report::PageTensor *weights = find(page, "l.{0…2}.w");
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->role, "parameter");
  EXPECT_EQ(weights->count, 3);
  EXPECT_EQ(weights->copies, 4);
  EXPECT_EQ(weights->bytes, 100);
  EXPECT_EQ(weights->state, (std::vector<std::string>{"m", "v"}));
  const report::PageTensor *input = find(page, "x");
  ASSERT_TRUE(input);
  EXPECT_EQ(input->copies, 1);
  EXPECT_EQ(input->dims[0].local, 2); // 4 ranks times 2 rows: 2 rows of padding
  EXPECT_EQ(input->dims[0].parts, 4);
  EXPECT_EQ(input->dims[0].axes, std::vector<std::string>{"data"});
}

TEST_F(PageTest, CollectivesOfBothPassesAreApart) {
  options.mesh = {{"data", 2}};
  read(kModel);
  std::set<std::string> parts;
  for (const report::PageCollective &collective : page.collectives) {
    EXPECT_FALSE(collective.cause.empty());
    parts.insert(collective.part);
  }
  EXPECT_EQ(parts, (std::set<std::string>{"the forward pass", "the backward pass"}));
  EXPECT_NE(report::writeHtml(page).find("in the backward pass"), std::string::npos);
}

TEST_F(PageTest, AProgramByHandIsShownAsItIs) {
  read(kLocal);
  expectPromise();
  ASSERT_EQ(page.layers.size(), 1u);
  EXPECT_EQ(page.layers[0].title, "the program");
  ASSERT_EQ(page.layers[0].forward.size(), 1u);
  const report::PageOp &gather = page.layers[0].forward[0];
  EXPECT_TRUE(gather.isCommunication);
  EXPECT_EQ(gather.axes, std::vector<std::string>{"x"});
}

TEST_F(PageTest, NoPassHasMadeWhatAProgramByHandHasOutsideOfLayers) {
  read(R"(
dist.mesh @mesh <["x"=3]>
func.func @step(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %0 = nn.tanh %x {nn.layer = "l.0"} : tensor<4xf32>
  %1 = dist.all_reduce {"x"} sum %0 {reason = "by hand"} : tensor<4xf32>
  %2 = nn.exp %1 : tensor<4xf32>
  %3 = nn.tanh %2 {nn.layer = "l.1"} : tensor<4xf32>
  return %3 : tensor<4xf32>
}
)");
  EXPECT_TRUE(has(page, "outside layers", "all_reduce"));
  EXPECT_TRUE(has(page, "outside layers", "exp"));
}

} // namespace
