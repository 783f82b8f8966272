// What the interpreter itself promises: rounding, padding, shards, the observer, the initial
// values.
#include "TestSupport.h"

#include "shoal/Interfaces/Reference.h"

#include <cmath>

using namespace mlir;

namespace shoal::interp {
namespace {

using ReferenceTest = InterpreterTest;

TEST_F(ReferenceTest, roundsToTheElementType) {
  Builder builder(&context);
  auto rounded = [&](Type element, double value, Precision precision = Precision::Program) {
    Tensor tensor(type({}, element));
    tensor.set(0, value);
    normalize(tensor, precision);
    return tensor.at(0);
  };
  EXPECT_EQ(rounded(builder.getF32Type(), 0.1), double(0.1f));
  EXPECT_EQ(rounded(builder.getF32Type(), 0.1, Precision::F64), 0.1);
  EXPECT_EQ(rounded(builder.getF64Type(), 0.1), 0.1);
  // bf16 has 8 bits of mantissa; a tie goes to the even neighbour, in one rounding.
  EXPECT_EQ(rounded(builder.getBF16Type(), 1.0 + 0x1p-8), 1.0);
  EXPECT_EQ(rounded(builder.getBF16Type(), 1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7);
  EXPECT_TRUE(std::isinf(rounded(builder.getBF16Type(), 3.4e38)));
  EXPECT_EQ(rounded(builder.getI32Type(), double(1ll << 31)), -double(1ll << 31));
  EXPECT_EQ(rounded(builder.getI1Type(), 3), 1);
}

TEST_F(ReferenceTest, shardsArePaddedLoudly) {
  OwningOpRef<ModuleOp> module = parse(R"(
    dist.mesh @mesh <["x"=2, "y"=2]>
    func.func private @f() attributes {
      shard = #dist.sharding<@mesh, [{"y", "x"}]>,
      partial = #dist.sharding<@mesh, [{}], unreduced=max{"y"}>})");
  ASSERT_TRUE(module);
  dist::MeshAttr mesh = dist::lookupMesh(*module).getMesh();
  auto shard = function(*module)->getAttrOfType<dist::ShardingAttr>("shard");
  auto partial = function(*module)->getAttrOfType<dist::ShardingAttr>("partial");
  Builder builder(&context);
  Tensor whole(type({5}, builder.getF32Type())), labels(type({5}, builder.getI64Type()));
  for (int64_t k = 0; k < 5; ++k)
    whole.f[k] = labels.i[k] = k;
  // Axis order is layout: y is the major axis, so position (x=1, y=0) holds the second shard.
  EXPECT_EQ(takeShard(whole, shard, mesh, 0).f, (std::vector<double>{0, 1}));
  EXPECT_EQ(takeShard(whole, shard, mesh, 2).f, (std::vector<double>{2, 3}));
  EXPECT_EQ(takeShard(whole, shard, mesh, 1).f[0], 4);
  EXPECT_TRUE(std::isnan(takeShard(whole, shard, mesh, 1).f[1]));
  EXPECT_TRUE(std::isnan(takeShard(whole, shard, mesh, 3).f[0]));
  EXPECT_EQ(takeShard(labels, shard, mesh, 1).i, (std::vector<int64_t>{4, kPaddingInt}));
  // Of a partial value one device holds all, the others the identity of max.
  EXPECT_EQ(takeShard(whole, partial, mesh, 2).f, whole.f);
  EXPECT_EQ(takeShard(whole, partial, mesh, 1).f[0], -INFINITY);
}

// Rows in another order, with their positions, make what they make in order; rows that do not exist change nothing.
TEST_F(ReferenceTest, attentionFollowsPositions) {
  auto run = [&](int64_t rows, const std::string &masks, const std::vector<int64_t> &positions) {
    auto of = [&](const char *rest) { return "tensor<1x" + std::to_string(rows) + rest; };
    std::string q = of("x1x1x2xf64>"), k = of("x1x2xf64>"), p = "tensor<" + std::to_string(rows) + "xi64>";
    bool positioned = !positions.empty();
    OwningOpRef<ModuleOp> module =
        parse("func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k + ", %p: " + p + ") -> " + q +
              " {\n%o, %lse = nn.attention %q, %k, %v " + (positioned ? "positions = %p, %p " : "") + masks +
              " scale = 0.5 : (" + q + ", " + k + ", " + k + (positioned ? ", " + p + ", " + p : "") + ") -> " + q +
              "\nreturn %o : " + q + "\n}");
    Builder builder(&context);
    TensorList args;
    for (int which = 0; which < 3; ++which) {
      Tensor tensor(which == 0 ? type({1, rows, 1, 1, 2}, builder.getF64Type())
                               : type({1, rows, 1, 2}, builder.getF64Type()));
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t x = 0; x < 2; ++x) {
          int64_t place = positioned ? positions[row] : row;
          tensor.f[row * 2 + x] = place < 0 ? 100 : std::sin(double(1 + which + place * 3 + x * 5));
        }
      args.push_back(std::move(tensor));
    }
    Tensor places(type({rows}, builder.getI64Type()));
    for (int64_t row = 0; positioned && row < rows; ++row)
      places.i[row] = positions[row];
    args.push_back(std::move(places));
    FailureOr<TensorList> results = runGlobal(function(*module), args, {});
    EXPECT_TRUE(succeeded(results));
    return (*results)[0].f;
  };
  for (const char *masks : {"", "causal", "window = 2", "causal window = 3"}) {
    std::vector<double> inOrder = run(4, masks, {});
    std::vector<int64_t> positions = {2, -1, 0, 3, -9, 1};
    std::vector<double> permuted = run(6, masks, positions);
    for (int64_t row = 0; row < 6; ++row)
      for (int64_t x = 0; x < 2; ++x)
        EXPECT_NEAR(permuted[row * 2 + x], positions[row] < 0 ? 0 : inOrder[positions[row] * 2 + x], 1e-14) << masks;
  }
}

TEST_F(ReferenceTest, observerSeesEveryResult) {
  OwningOpRef<ModuleOp> module = parse(R"(
    func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
      %0 = nn.exp %x : tensor<2xf32>
      %1 = nn.reduce sum %0 dims = [0] : tensor<2xf32> -> tensor<f32>
      return %1 : tensor<f32>
    })");
  std::vector<std::string> seen;
  RunOptions options;
  options.observer = [&](Operation *op, int64_t position, ArrayRef<const Tensor *> results) {
    seen.push_back(op->getName().getStringRef().str() + " " + std::to_string(results.size()) + " " +
                   std::to_string(position));
  };
  func::FuncOp func = function(*module);
  FailureOr<TensorList> results =
      runGlobal(func, {*makeArgument(func, 0, 0, ArgumentOptions{})}, options);
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(seen, (std::vector<std::string>{"nn.exp 1 0", "nn.reduce 1 0"}));
}

// What an update makes of a gradient that is off: no new value is further off, and of an update that does not divide by
// its gradients rounding tells.
TEST_F(ReferenceTest, updatesAmplifyErrors) {
  OwningOpRef<ModuleOp> module = parse(R"(
    func.func @f(%p: tensor<4xf64>, %g: tensor<4xf64>, %m: tensor<4xf64>, %v: tensor<4xf64>, %lr: tensor<f64>,
                 %t: tensor<i64>) -> (tensor<4xf64>, tensor<4xf64>) {
      %0 = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf64>, tensor<f64>
      %1:3 = nn.adam_update %p, %g, %m, %v lr = %lr step = %t {beta1 = 0.9 : f64, beta2 = 0.99 : f64,
          eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : tensor<4xf64>, tensor<f64>
      return %0, %1#0 : tensor<4xf64>, tensor<4xf64>
    })");
  ASSERT_TRUE(module);
  func::FuncOp func = function(*module);
  TensorList arguments;
  for (Type argument : func.getArgumentTypes())
    arguments.emplace_back(cast<RankedTensorType>(argument));
  arguments[1].f = {0, 1e-12, -1e-9, 2};
  arguments[4].f = {0.1};
  arguments[5].i = {1};
  const double off = 1e-10;
  std::vector<double> ofSgd, ofAdam;
  RunOptions options;
  options.observer = [&](Operation *op, int64_t, ArrayRef<const Tensor *> results) {
    auto scalarOf = [&](Value value) { return arguments[cast<BlockArgument>(value).getArgNumber()].at(0); };
    (isa<nn::SgdUpdateOp>(op) ? ofSgd : ofAdam) = cast<ReferenceOpInterface>(op).amplifyError(scalarOf, results, off);
  };
  FailureOr<TensorList> exact = runGlobal(func, arguments, options);
  ASSERT_TRUE(succeeded(exact));
  EXPECT_TRUE(ofSgd.empty());
  ASSERT_EQ(ofAdam.size(), 4u);
  for (double side : {-off, off}) {
    TensorList others = arguments;
    for (double &g : others[1].f)
      g += side;
    FailureOr<TensorList> moved = runGlobal(func, others);
    ASSERT_TRUE(succeeded(moved));
    for (int k = 0; k < 4; ++k)
      EXPECT_LE(std::abs((*moved)[1].f[k] - (*exact)[1].f[k]), ofAdam[k] + 1e-15) << k;
  }
  // Where the gradient is far from its error the bound is small, where it is all error it is that of a step.
  EXPECT_LT(ofAdam[3], 1e-9);
  EXPECT_GT(ofAdam[0], 1e-4);
  EXPECT_LE(ofAdam[1], 0.2);
}

// Argument types that do not fit are refused, not reinterpreted.
TEST_F(ReferenceTest, refusesWrongArguments) {
  OwningOpRef<ModuleOp> module =
      parse("func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }");
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  Builder builder(&context);
  EXPECT_TRUE(failed(runGlobal(function(*module), {})));
  EXPECT_EQ(message, "takes 1 arguments, got: 0");
  EXPECT_TRUE(failed(runGlobal(function(*module), {Tensor(type({3}, builder.getF32Type()))})));
  EXPECT_EQ(message, "argument 0 is a 'tensor<2xf32>', got: 'tensor<3xf32>'");
}

// Parameters depend on seed and name only; targets stay inside the classes, and some are ignored.
TEST_F(ReferenceTest, argumentsAreFunctionsOfSeedAndName) {
  OwningOpRef<ModuleOp> module = parse(R"(
    func.func @f(%y: tensor<64xi64> {nn.input = "y"}, %n: tensor<i64> {nn.valid_rows},
                 %w: tensor<64x3xf32> {nn.param = #nn.param<"w", init = uniform(-0.5, 0.5)>},
                 %z: tensor<64x3xf32> {nn.param = #nn.param<"z", init = zeros>})
        -> (tensor<f32> {nn.loss}) {
      %m = nn.mask %y dim = 0 limit = %n fill = -7.0 : tensor<64xi64>
      %l, %l_lse = nn.cross_entropy sum %w, %m ignore_index = -7 : (tensor<64x3xf32>, tensor<64xi64>) -> tensor<f32>
      return %l : tensor<f32>
    })");
  func::FuncOp func = function(*module);
  Tensor targets = *makeArgument(func, 0, 0, ArgumentOptions{});
  EXPECT_EQ(*std::max_element(targets.i.begin(), targets.i.end()), 2);
  EXPECT_EQ(*std::min_element(targets.i.begin(), targets.i.end()), -7);
  EXPECT_TRUE(llvm::all_of(targets.i, [](int64_t t) { return t == -7 || (t >= 0 && t < 3); }));
  EXPECT_NE(targets.i, makeArgument(func, 0, 1, ArgumentOptions{})->i);

  EXPECT_EQ(makeArgument(func, 1, 1, ArgumentOptions{})->i[0], 64);
  int64_t rows = makeArgument(func, 1, 1, ArgumentOptions{1, false, true})->i[0];
  EXPECT_TRUE(rows >= 1 && rows < 64) << rows;

  Tensor weight = *makeArgument(func, 2, 0, ArgumentOptions{});
  EXPECT_EQ(weight.f, makeArgument(func, 2, 5, ArgumentOptions{})->f);
  EXPECT_NE(weight.f, makeArgument(func, 2, 0, ArgumentOptions{2})->f);
  EXPECT_TRUE(llvm::all_of(weight.f, [](double w) { return w >= -0.5 && w < 0.5; }));
  EXPECT_EQ(makeArgument(func, 3, 0, ArgumentOptions{})->f, std::vector<double>(192, 0.0));
  EXPECT_NE(makeArgument(func, 3, 0, ArgumentOptions{1, true})->f[0], 0.0);
}

// Inputs are drawn from all that they index, wherever on the way a part of them is taken; what each of
// several ops has a row or class for is drawn alone. Only what is an index as a whole bounds data.
TEST_F(ReferenceTest, indicesCoverWhatTheyIndex) {
  OwningOpRef<ModuleOp> module = parse(R"(
    func.func @f(%i: tensor<400xi64> {nn.input = "i"}, %j: tensor<400xi64> {nn.input = "j"}, %k: tensor<400xi32> {nn.input = "k"},
                 %w: tensor<400x9xf32> {nn.param = #nn.param<"w", init = zeros>},
                 %t: tensor<40x3xf32> {nn.param = #nn.param<"t", init = zeros>})
        -> (tensor<f32> {nn.loss}) {
      %0 = nn.embedding %t, %i : (tensor<40x3xf32>, tensor<400xi64>) -> tensor<400x3xf32>
      %1 = nn.slice %j dim = 0 start = 7 : tensor<400xi64> -> tensor<200xi64>
      %2 = nn.reshape %1 : tensor<200xi64> -> tensor<2x100xi64>
      %3 = nn.embedding %t, %2 : (tensor<40x3xf32>, tensor<2x100xi64>) -> tensor<2x100x3xf32>
      %4 = nn.embedding %t, %k : (tensor<40x3xf32>, tensor<400xi32>) -> tensor<400x3xf32>
      %l, %lse = nn.cross_entropy sum %w, %k ignore_index = -7 : (tensor<400x9xf32>, tensor<400xi32>) -> tensor<f32>
      return %l : tensor<f32>
    })");
  func::FuncOp func = function(*module);
  auto bounds = [&](unsigned argument) {
    std::vector<int64_t> drawn = makeArgument(func, argument, 0, ArgumentOptions{})->i;
    auto [low, high] = std::minmax_element(drawn.begin(), drawn.end());
    return std::pair(*low, *high);
  };
  EXPECT_EQ(bounds(0), std::pair(int64_t(0), int64_t(39)));
  EXPECT_EQ(bounds(1), std::pair(int64_t(0), int64_t(39)));
  EXPECT_EQ(bounds(2), std::pair(int64_t(0), int64_t(8))); // -7 is no row of the table
  auto sizeOf = [&](unsigned argument, nn::IndexUse use) {
    auto range = nn::findIndexRange(func.getArgument(argument), use, [](OpOperand &) { return Value(); });
    return range ? range->size : 0;
  };
  EXPECT_EQ(sizeOf(0, nn::IndexUse::All), 40);
  EXPECT_EQ(sizeOf(1, nn::IndexUse::All), 0);
  EXPECT_EQ(sizeOf(1, nn::IndexUse::Some), 40);
  EXPECT_EQ(sizeOf(2, nn::IndexUse::All), 9);
}

} // namespace
} // namespace shoal::interp
