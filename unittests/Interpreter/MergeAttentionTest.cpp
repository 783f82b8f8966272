// nn.merge_attention: parts of the keys put together give attention over all of them, however many they are, also where
// scores are large and where a mask leaves parts empty.
#include "TestSupport.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace shoal::interp {
namespace {

class MergeAttentionTest : public InterpreterTest {
protected:
  TensorList run(const std::string &text, const TensorList &arguments) {
    OwningOpRef<ModuleOp> module = parse(text);
    RunOptions options;
    options.precision = Precision::F64;
    return *runGlobal(function(*module), arguments, options);
  }

  Tensor random(ArrayRef<int64_t> shape, double scale) {
    Tensor tensor(type(shape, Float64Type::get(&context)));
    std::uniform_real_distribution<double> real(-scale, scale);
    for (double &value : tensor.f)
      value = real(numbers);
    return tensor;
  }

  std::mt19937 numbers{1};
};

/// Queries of 2 heads with 3 groups over `keys` keys, in parts of `part` and what is left, merged one after another.
std::string inParts(int64_t keys, int64_t part) {
  std::string q = "tensor<2x4x2x3x5xf64>", k = "tensor<2x" + std::to_string(keys) + "x2x5xf64>",
              lse = "tensor<2x4x2x3xf64>", all = "tensor<2x" + std::to_string(keys) + "xi64>";
  std::string text = "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k + ", %s: tensor<2x4xi64>, %t: " + all +
                     ") -> (" + q + ", " + lse + ", " + q + ", " + lse + ") {\n";
  auto attend = [&](const std::string &name, const std::string &suffix, int64_t size) {
    std::string rows = "tensor<2x" + std::to_string(size) + "x", heads = rows + "2x5xf64>";
    text += "  %o" + name + ", %l" + name + " = nn.attention %q, %k" + suffix + ", %v" + suffix + " segments = %s, %t" +
            suffix + " scale = 1.0 : (" + q + ", " + heads + ", " + heads + ", tensor<2x4xi64>, " + rows + "i64>) -> " +
            q + "\n";
  };
  attend("all", "", keys);
  std::string sum;
  for (int64_t begin = 0; begin < keys; begin += part) {
    std::string name = std::to_string(begin);
    int64_t size = std::min(part, keys - begin);
    for (std::string tensor : {"k", "v", "t"}) {
      bool isSegment = tensor == "t";
      std::string to = "tensor<2x" + std::to_string(size) + (isSegment ? "xi64>" : "x2x5xf64>");
      text += "  %" + tensor + name + " = nn.slice %" + tensor + " dim = 1 start = " + name + " : " +
              (isSegment ? all : k) + " -> " + to + "\n";
    }
    attend(name, name, size);
    if (!sum.empty()) {
      std::string merged = "m" + name;
      text += "  %o" + merged + ", %l" + merged + " = nn.merge_attention %o" + sum + ", %l" + sum + ", %o" + name +
              ", %l" + name + " : " + q + "\n";
      name = merged;
    }
    sum = name;
  }
  return text + "  return %oall, %lall, %o" + sum + ", %l" + sum + " : " + q + ", " + lse + ", " + q + ", " + lse +
         "\n}";
}

TEST_F(MergeAttentionTest, partsGiveTheWhole) {
  for (double scale : {1.0, 20.0}) // scores of up to 5 and 2000
    for (int64_t part : {1, 2, 3, 6, 7}) {
      TensorList arguments{random({2, 4, 2, 3, 5}, scale), random({2, 7, 2, 5}, scale), random({2, 7, 2, 5}, 1)};
      // Of the first row's keys the first two are seen by nobody, of the second row's no query but the last sees any.
      Tensor queries(type({2, 4}, IntegerType::get(&context, 64))), keys(type({2, 7}, IntegerType::get(&context, 64)));
      queries.i = {0, 0, 1, 1, 5, 5, 5, 2};
      keys.i = {9, 9, 0, 0, 1, 1, 0, 2, 2, 3, 3, 2, 2, 2};
      arguments.push_back(queries);
      arguments.push_back(keys);
      TensorList results = run(inParts(7, part), arguments);
      ASSERT_EQ(results.size(), 4u);
      for (int64_t k = 0; k < results[0].size(); ++k)
        EXPECT_NEAR(results[2].f[k], results[0].f[k], 1e-12) << k << " in parts of " << part;
      for (int64_t k = 0; k < results[1].size(); ++k)
        EXPECT_TRUE(results[3].f[k] == results[1].f[k] ||
                    std::abs(results[3].f[k] - results[1].f[k]) < 1e-12 * std::max(1.0, std::abs(results[1].f[k])))
            << k << " in parts of " << part;
      EXPECT_EQ(results[3].f[24], -INFINITY);
      EXPECT_EQ(results[2].f[24 * 5], 0);
    }
}

TEST_F(MergeAttentionTest, anEmptyPartChangesNoBit) {
  const double none = -INFINITY, nan = NAN;
  std::string text = "func.func @f(%o: tensor<4x2xf32>, %l: tensor<4xf32>, %p: tensor<4x2xf32>, %m: tensor<4xf32>) -> "
                     "(tensor<4x2xf32>, tensor<4xf32>) {\n"
                     "  %0:2 = nn.merge_attention %o, %l, %p, %m : tensor<4x2xf32>\n"
                     "  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4xf32>\n}";
  Type f32 = Float32Type::get(&context);
  Tensor o(type({4, 2}, f32)), l(type({4}, f32)), p = o, m = l;
  o.f = {-0.0, 0.1f, 7, 8, 0, -0.0, 1, 2};
  l.f = {1e3, none, none, 1};
  p.f = {5, 6, -0.0, 0.3f, 9, 9, nan, nan};
  m.f = {none, -1e3, none, none};
  TensorList results = run(text, {o, l, p, m});
  const double wanted[] = {-0.0, 0.1f, -0.0, 0.3f, 0, -0.0, 1, 2}, wantedLse[] = {1e3, -1e3, none, 1};
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(results[0].f[k], wanted[k]) << k;
    EXPECT_EQ(std::signbit(results[0].f[k]), std::signbit(wanted[k])) << k;
  }
  for (int k = 0; k < 4; ++k)
    EXPECT_EQ(results[1].f[k], wantedLse[k]) << k;
}

// Of scores so large that f32 knows their logarithm of a sum to 1/16,000, the weights still add up to 1.
TEST_F(MergeAttentionTest, weightsAddUpToOne) {
  std::string text = "func.func @f(%o: tensor<3x1xf32>, %l: tensor<3xf32>, %m: tensor<3xf32>) -> tensor<3x1xf32> {\n"
                     "  %0:2 = nn.merge_attention %o, %l, %o, %m : tensor<3x1xf32>\n  return %0#0 : tensor<3x1xf32>\n}";
  Type f32 = Float32Type::get(&context);
  Tensor o(type({3, 1}, f32)), l(type({3}, f32)), m = l;
  o.f = {1, 1, 1};
  l.f = {1000, 1000, -3e38};
  m.f = {1000.5, 999.75, 3e38};
  OwningOpRef<ModuleOp> module = parse(text);
  TensorList results = *runGlobal(function(*module), {o, l, m});
  for (double value : results[0].f)
    EXPECT_NEAR(value, 1, 1e-7);
}

} // namespace
} // namespace shoal::interp
