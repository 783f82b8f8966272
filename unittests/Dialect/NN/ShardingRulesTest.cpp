// Sharding rules of the `nn` ops, written as in einsum: a letter per factor, letters beside each
// other where a dimension is made of several, "." where it has none. Then the factors that are not
// pass-through, and what the op is linear in.
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace shoal;

namespace {

std::string print(const TensorFactors &tensor) {
  std::string text = "[";
  for (auto [d, factors] : llvm::enumerate(tensor)) {
    text += d ? "," : "";
    for (unsigned factor : factors)
      text += char('a' + factor);
    text += factors.empty() ? "." : "";
  }
  return text + "]";
}

std::string print(const ShardingRule &rule) {
  std::string text;
  for (const TensorFactors &tensor : rule.operands)
    text += print(tensor);
  text += "->";
  for (const TensorFactors &tensor : rule.results)
    text += print(tensor);
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    std::string name = std::string(" ") + char('a' + f) + "=" + std::to_string(factor.size);
    switch (factor.kind) {
    case FactorKind::PassThrough:
      break;
    case FactorKind::Reduction:
      text += name + (factor.reduce == ReduceKind::Max ? " max" : " sum");
      break;
    case FactorKind::NeedReplication:
      text += name + " whole";
      break;
    case FactorKind::Decompose:
      text += name + " decompose";
      break;
    case FactorKind::Permutation:
      text += name + " passes";
      for (AlignedFactors pair : rule.aligned)
        if (pair.passing == f)
          text += std::string(" ") + char('a' + pair.lead);
      for (ReorderedFactors pair : rule.reordered)
        if (pair.passing == f)
          text += std::string(" ") + char('a' + pair.lead) + " over " + std::to_string(pair.shards);
      break;
    }
  }
  for (ArrayRef<unsigned> group : rule.linear) {
    text += " linear";
    for (unsigned operand : group)
      text += " " + std::to_string(operand);
  }
  return text + (rule.movesOnly ? " moves" : "");
}

class ShardingRules : public testing::Test {
protected:
  ShardingRules() { context.loadDialect<func::FuncDialect, nn::NNDialect>(); }

  /// Parses a function around the text of one op, whose operands are arguments of the given types.
  Operation *parse(StringRef args, StringRef op) {
    std::string text = "func.func @f(" + args.str() + ") {\n" + op.str() + "\nreturn\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module || failed(verify(*module)))
      return nullptr;
    return &function().front().front();
  }
  func::FuncOp function() { return cast<func::FuncOp>(module->getBody()->front()); }

  std::string rule(StringRef args, StringRef op) {
    Operation *parsed = parse(args, op);
    if (!parsed)
      return "invalid";
    return print(cast<ShardingRuleOpInterface>(parsed).getShardingRule());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(ShardingRules, Elementwise) {
  EXPECT_EQ(rule("%a: tensor<8x4xf32>, %b: tensor<1x4xf32>",
                 "%0 = nn.add %a, %b : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>"),
            "[a,b][.,b]->[a,b] linear 0 1");
  EXPECT_EQ(rule("%a: tensor<8x4xf32>, %b: tensor<4xf32>",
                 "%0 = nn.mul %a, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>"),
            "[a,b][b]->[a,b] linear 0 linear 1");
  EXPECT_EQ(rule("%a: tensor<4xf32>, %b: tensor<f32>",
                 "%0 = nn.div %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>"),
            "[a][]->[a] linear 0");
  EXPECT_EQ(rule("%a: tensor<4xi32>, %b: tensor<i32>",
                 "%0 = nn.div %a, %b : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>"),
            "[a][]->[a]");
  // Of a partial sum none may be taken: no group of operands is linear.
  for (std::string op : {"relu", "sigmoid", "silu", "erf", "erfc", "sin", "cos", "gelu tanh", "gelu erf"})
    EXPECT_EQ(rule("%a: tensor<4xf32>", "%0 = nn." + op + " %a : tensor<4xf32>"), "[a]->[a]") << op;
  EXPECT_EQ(rule("%c: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<f32>",
                 "%0 = nn.select %c, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> "
                 "tensor<4xf32>"),
            "[a][a][]->[a] linear 1 2");
  EXPECT_EQ(rule("%a: tensor<4xf32>", "%0 = nn.cast %a : tensor<4xf32> -> tensor<4xf64>"),
            "[a]->[a]");
}

TEST_F(ShardingRules, Positions) {
  EXPECT_EQ(rule("", "%0 = nn.iota dim = 1 : tensor<4x8xi64>"), "->[a,b]");
  EXPECT_EQ(rule("%a: tensor<3x4xf32>, %b: tensor<2x4xf32>",
                 "%0 = nn.concat %a, %b dim = 0 : (tensor<3x4xf32>, tensor<2x4xf32>) -> "
                 "tensor<5x4xf32>"),
            "[c,b][d,b]->[a,b] a=5 whole c=3 whole d=2 whole linear 0 1");
  EXPECT_EQ(rule("%a: tensor<8x4xf32>, %u: tensor<2x4xf32>, %s: tensor<i64>",
                 "%0 = nn.dynamic_update_slice %a, %u dim = 0 start = %s : tensor<8x4xf32>, "
                 "tensor<2x4xf32>"),
            "[a,b][c,b][]->[a,b] a=8 whole c=2 whole linear 0 1");
}

TEST_F(ShardingRules, BatchNorm) {
  EXPECT_EQ(rule("%x: tensor<8x4x3xf32>, %f: tensor<4xf32>",
                 "%0:3 = nn.batch_norm %x, %f, %f, %f, %f momentum = 0.1 eps = 1.0e-5 : "
                 "tensor<8x4x3xf32>, tensor<4xf32>"),
            "[a,b,c][b][b][b][b]->[a,b,c][b][b] a=8 decompose c=3 decompose");
}

TEST_F(ShardingRules, RowNorms) {
  EXPECT_EQ(rule("%x: tensor<8x4x3xf32>, %p: tensor<3xf32>",
                 "%0:3 = nn.layer_norm %x, %p, %p eps = 1.0e-5 : tensor<8x4x3xf32>, tensor<3xf32>"),
            "[a,b,c][c][c]->[a,b,c][a,b][a,b] c=3 decompose");
  EXPECT_EQ(rule("%x: tensor<4x3xf32>, %p: tensor<3xf32>",
                 "%0:2 = nn.rms_norm %x, %p eps = 1.0e-5 : tensor<4x3xf32>, tensor<3xf32>"),
            "[a,b][b]->[a,b][a] b=3 decompose");
}

TEST_F(ShardingRules, Rope) {
  EXPECT_EQ(rule("%x: tensor<2x8x3x6xf32>, %p: tensor<8xi64>",
                 "%0 = nn.rope %x, %p base = 10000.0 : tensor<2x8x3x6xf32>, tensor<8xi64>"),
            "[a,b,c,d][b]->[a,b,c,d] d=6 whole linear 0");
  EXPECT_EQ(rule("%x: tensor<2x8x6xf32>, %p: tensor<2x8xi64>",
                 "%0 = nn.rope %x, %p base = 10000.0 : tensor<2x8x6xf32>, tensor<2x8xi64>"),
            "[a,b,c][a,b]->[a,b,c] c=6 whole linear 0");
  EXPECT_EQ(
      rule("%p: tensor<2x8xi64>", "%0:2 = nn.rope_table %p base = 10000.0 : tensor<2x8xi64> -> tensor<2x8x3xf32>"),
      "[a,b]->[a,b,c][a,b,c] c=3 whole");
  EXPECT_EQ(rule("%x: tensor<2x8x3x2x6xf32>, %t: tensor<8x6xf32>",
                 "%0 = nn.rotate %x, %t, %t : tensor<2x8x3x2x6xf32>, tensor<8x6xf32>"),
            "[a,b,c,d,e][b,e][b,e]->[a,b,c,d,e] d=2 whole linear 0 linear 1 2");
  EXPECT_EQ(rule("%x: tensor<2x8x2x6xf32>, %t: tensor<2x8x6xf32>",
                 "%0 = nn.rotate %x, %t, %t : tensor<2x8x2x6xf32>, tensor<2x8x6xf32>"),
            "[a,b,c,d][a,b,d][a,b,d]->[a,b,c,d] c=2 whole linear 0 linear 1 2");
}

TEST_F(ShardingRules, Mask) {
  EXPECT_EQ(rule("%a: tensor<8x4xf32>, %l: tensor<i64>",
                 "%0 = nn.mask %a dim = 0 limit = %l fill = 0.0 : tensor<8x4xf32>"),
            "[a,b][]->[a,b] linear 0");
  EXPECT_EQ(rule("%a: tensor<8x4xf32>, %l: tensor<i64>, %o: tensor<i64>",
                 "%0 = nn.mask %a dim = 0 limit = %l offset = %o fill = 1.0 : tensor<8x4xf32>"),
            "[a,b][][]->[a,b]");
}

TEST_F(ShardingRules, Constant) {
  EXPECT_EQ(rule("", "%0 = nn.constant dense<1.0> : tensor<8xf32>"), "->[a]");
  EXPECT_EQ(rule("", "%0 = nn.constant dense<[1, 2]> : tensor<2xi64>"), "->[a] a=2 whole");
}

std::string reshape(StringRef from, StringRef to) {
  return ("%0 = nn.reshape %a : tensor<" + from + "xf32> -> tensor<" + to + "xf32>").str();
}

TEST_F(ShardingRules, Reshape) {
  // Merge and split.
  EXPECT_EQ(rule("%a: tensor<6x4xf32>", reshape("6x4", "24")), "[a,b]->[ab] linear 0 moves");
  EXPECT_EQ(rule("%a: tensor<24xf32>", reshape("24", "2x3x4")), "[abc]->[a,b,c] linear 0 moves");
  // Common factors of 4x6 and 8x3 are 4, 2, 3.
  EXPECT_EQ(rule("%a: tensor<4x6xf32>", reshape("4x6", "8x3")), "[a,bc]->[ab,c] linear 0 moves");
  // 2 is common to 6 and 4, the rest of both rows is not.
  EXPECT_EQ(rule("%a: tensor<6x4xf32>", reshape("6x4", "4x6")),
            "[ab,e]->[ac,d] b=3 whole c=2 whole d=6 whole e=4 whole linear 0 moves");
  // What comes behind an unaligned part is aligned again.
  EXPECT_EQ(rule("%a: tensor<2x3x5xf32>", reshape("2x3x5", "3x2x5")),
            "[a,c,e]->[b,d,e] a=2 whole b=3 whole c=3 whole d=2 whole linear 0 moves");
  // Sizes of one come and go; a batch of one stays a dimension.
  EXPECT_EQ(rule("%a: tensor<1x4xf32>", reshape("1x4", "4x1")), "[.,a]->[a,.] linear 0 moves");
  EXPECT_EQ(rule("%a: tensor<1x4xf32>", reshape("1x4", "1x2x2")), "[a,bc]->[a,b,c] linear 0 moves");
  EXPECT_EQ(rule("%a: tensor<1xf32>", "%0 = nn.reshape %a : tensor<1xf32> -> tensor<f32>"),
            "[.]->[] linear 0 moves");
}

TEST_F(ShardingRules, Shape) {
  EXPECT_EQ(rule("%a: tensor<2x3x4xf32>",
                 "%0 = nn.transpose %a [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>"),
            "[a,b,c]->[c,a,b] linear 0 moves");
  EXPECT_EQ(
      rule("%a: tensor<3x1xf32>", "%0 = nn.broadcast %a : tensor<3x1xf32> -> tensor<2x3x4xf32>"),
      "[b,.]->[a,b,c] linear 0 moves");
  EXPECT_EQ(rule("%a: tensor<8x4xf32>",
                 "%0 = nn.slice %a dim = 0 start = 1 : tensor<8x4xf32> -> tensor<3x4xf32>"),
            "[a,b]->[c,b] a=8 whole c=3 whole linear 0 moves");
  EXPECT_EQ(rule("%a: tensor<8x4xf32>",
                 "%0 = nn.pad %a dim = 1 low = 0 : tensor<8x4xf32> -> tensor<8x6xf32>"),
            "[a,b]->[a,c] b=4 whole c=6 whole linear 0");
  EXPECT_EQ(rule("%a: tensor<8xf32>, %s: tensor<i64>",
                 "%0 = nn.dynamic_slice %a dim = 0 start = %s : tensor<8xf32> -> tensor<2xf32>"),
            "[a][]->[b] a=8 whole b=2 whole linear 0");
}

TEST_F(ShardingRules, Matmul) {
  EXPECT_EQ(rule("%a: tensor<2x3xf32>, %b: tensor<4x3xf32>",
                 "%0 = nn.matmul %a, %b {transpose_b} : (tensor<2x3xf32>, tensor<4x3xf32>) -> "
                 "tensor<2x4xf32>"),
            "[a,c][b,c]->[a,b] c=3 sum linear 0 linear 1");
  EXPECT_EQ(rule("%a: tensor<5x3x2xf32>, %b: tensor<5x3x4xf32>",
                 "%0 = nn.matmul %a, %b {transpose_a} : (tensor<5x3x2xf32>, tensor<5x3x4xf32>) -> "
                 "tensor<5x2x4xf32>"),
            "[a,d,b][a,d,c]->[a,b,c] d=3 sum linear 0 linear 1");
  EXPECT_EQ(
      rule("%a: tensor<5x2x3xf32>, %b: tensor<3x4xf32>",
           "%0 = nn.matmul %a, %b : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>"),
      "[a,b,d][d,c]->[a,b,c] d=3 sum linear 0 linear 1");
  EXPECT_EQ(rule("%a: tensor<5x2x3xf32>, %b: tensor<5x3x4xf32>",
                 "%0 = nn.matmul %a, %b {sum_batch} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> "
                 "tensor<2x4xf32>"),
            "[a,b,d][a,d,c]->[b,c] a=5 sum d=3 sum linear 0 linear 1");
}

// A factor for every dimension, whether summed or not.
TEST_F(ShardingRules, Tensordot) {
  EXPECT_EQ(rule("%a: tensor<5x2x6xf32>, %b: tensor<6x3x4xf32>",
                 "%0 = nn.tensordot %a, %b axes = 1 : (tensor<5x2x6xf32>, tensor<6x3x4xf32>) -> "
                 "tensor<5x2x3x4xf32>"),
            "[a,b,e][e,c,d]->[a,b,c,d] e=6 sum linear 0 linear 1");
  EXPECT_EQ(rule("%a: tensor<3x4x5xf32>, %b: tensor<2x3x4xf32>",
                 "%0 = nn.tensordot %a, %b axes = 2 {transpose_a, transpose_b} : "
                 "(tensor<3x4x5xf32>, tensor<2x3x4xf32>) -> tensor<5x2xf32>"),
            "[c,d,a][b,c,d]->[a,b] c=3 sum d=4 sum linear 0 linear 1");
  EXPECT_EQ(rule("%a: tensor<3xf32>, %b: tensor<2xf32>",
                 "%0 = nn.tensordot %a, %b axes = 0 : (tensor<3xf32>, tensor<2xf32>) -> "
                 "tensor<3x2xf32>"),
            "[a][b]->[a,b] linear 0 linear 1");
}

// Batch and heads are independent; the gradient sums query heads in dk and dv only.
TEST_F(ShardingRules, Attention) {
  std::string q = "tensor<2x5x3x4x8xf32>", k = "tensor<2x5x3x8xf32>", l = "tensor<2x5x3x4xf32>", s = "tensor<2x5xi64>";
  EXPECT_EQ(rule("%q: " + q + ", %k: " + k + ", %v: " + k,
                 "%0:2 = nn.attention %q, %k, %v causal scale = 1.0 : (" + q + ", " + k + ", " + k + ") -> " + q),
            "[a,b,d,e,f][a,c,d,f][a,c,d,f]->[a,b,d,e,f][a,b,d,e] c=5 passes b f=8 whole");
  EXPECT_EQ(rule("%q: " + q + ", %k: " + k + ", %v: " + k + ", %l: " + l + ", %s: " + s,
                 "%0:3 = nn.attention_grad %q, %q, %k, %v, %q, %l segments = %s, %s scale = 1.0 : (" + q + ", " + q +
                     ", " + k + ", " + k + ", " + q + ", " + l + ", " + s + ", " + s + ") -> (" + q + ", " + k +
                     ", " + k + ")"),
            "[a,b,d,e,f][a,b,d,e,f][a,c,d,f][a,c,d,f][a,b,d,e,f][a,b,d,e][a,b][a,c]->[a,b,d,e,f][a,c,d,f][a,c,d,f] "
            "b=5 sum c=5 passes b e=4 sum f=8 whole linear 0");
}

// Positions are whole on every device, and no points of the products.
TEST_F(ShardingRules, AttentionPositions) {
  std::string q = "tensor<2x5x3x4x8xf32>", k = "tensor<2x7x3x8xf32>", l = "tensor<2x5x3x4xf32>", p = "tensor<5xi64>",
              r = "tensor<7xi64>";
  auto flops = [&] { return cast<ShardingRuleOpInterface>(&function().front().front()).getFlops(); };
  std::string arguments = "%q: " + q + ", %k: " + k + ", %l: " + l + ", %p: " + p + ", %r: " + r;
  EXPECT_EQ(
      rule(arguments, "%0:2 = nn.attention %q, %k, %k positions = %p, %r causal scale = 1.0 : (" + q + ", " + k + ", " +
                          k + ", " + p + ", " + r + ") -> " + q),
      "[a,b,d,e,f][a,c,d,f][a,c,d,f][g][h]->[a,b,d,e,f][a,b,d,e] c=7 passes b f=8 whole g=5 whole h=7 whole");
  EXPECT_EQ(flops(), 4 * 2 * 5 * 7 * 3 * 4 * 8);
  EXPECT_EQ(rule(arguments, "%0:3 = nn.attention_grad %q, %q, %k, %k, %q, %l positions = %p, %r scale = 1.0 : (" + q +
                                ", " + q + ", " + k + ", " + k + ", " + q + ", " + l + ", " + p + ", " + r + ") -> (" +
                                q + ", " + k + ", " + k + ")"),
            "[a,b,d,e,f][a,b,d,e,f][a,c,d,f][a,c,d,f][a,b,d,e,f][a,b,d,e][g][h]->[a,b,d,e,f][a,c,d,f][a,c,d,f] "
            "b=5 sum c=7 passes b e=4 sum f=8 whole g=5 whole h=7 whole linear 0");
  EXPECT_EQ(flops(), 10 * 2 * 5 * 7 * 3 * 4 * 8);
}

TEST_F(ShardingRules, Embedding) {
  EXPECT_EQ(rule("%t: tensor<7x6xf32>, %i: tensor<5x2xi64>",
                 "%0 = nn.embedding %t, %i : (tensor<7x6xf32>, tensor<5x2xi64>) -> "
                 "tensor<5x2x6xf32>"),
            "[c,d][a,b]->[a,b,d] c=7 sum linear 0");
  EXPECT_EQ(rule("%i: tensor<5x2xi64>, %ct: tensor<5x2x6xf32>, %o: tensor<i64>",
                 "%0 = nn.embedding_grad %i, %ct offset = %o : (tensor<5x2xi64>, "
                 "tensor<5x2x6xf32>) -> tensor<7x6xf32>"),
            "[a,b][a,b,d][]->[c,d] a=5 sum b=2 sum linear 1");
}

TEST_F(ShardingRules, Reduce) {
  EXPECT_EQ(
      rule("%a: tensor<2x3xf32>",
           "%0 = nn.reduce sum %a dims = [1] {keep_dims} : tensor<2x3xf32> -> tensor<2x1xf32>"),
      "[a,b]->[a,.] b=3 sum linear 0");
  EXPECT_EQ(rule("%a: tensor<2x3xf32>",
                 "%0 = nn.reduce max %a dims = [0] : tensor<2x3xf32> -> tensor<3xf32>"),
            "[a,b]->[b] a=2 max");
  EXPECT_EQ(rule("%a: tensor<2x3xf32>",
                 "%0 = nn.reduce mean %a dims = [0] : tensor<2x3xf32> -> tensor<3xf32>"),
            "[a,b]->[b] a=2 whole linear 0");
  EXPECT_EQ(rule("%a: tensor<2x3xf32>", "%0 = nn.softmax %a dim = 1 : tensor<2x3xf32>"),
            "[a,b]->[a,b] b=3 decompose");
}

TEST_F(ShardingRules, Cast) {
  EXPECT_EQ(rule("%a: tensor<2x3xf32>", "%0 = nn.cast %a : tensor<2x3xf32> -> tensor<2x3xbf16>"), "[a,b]->[a,b]");
  EXPECT_EQ(rule("%a: tensor<2x3xf32>", "%0 = nn.cast %a of_terms : tensor<2x3xf32> -> tensor<2x3xbf16>"),
            "[a,b]->[a,b] linear 0");
}

TEST_F(ShardingRules, Losses) {
  EXPECT_EQ(rule("%a: tensor<2x3xf32>",
                 "%0 = nn.mse_loss sum %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>"),
            "[a,b][a,b]->[] a=2 sum b=3 sum");
  EXPECT_EQ(
      rule("%a: tensor<2x3xf32>",
           "%0 = nn.mse_loss mean %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>"),
      "[a,b][a,b]->[] a=2 whole b=3 whole");
  EXPECT_EQ(
      rule("%a: tensor<2x3xf32>, %y: tensor<2xi64>",
           "%0, %lse0 = nn.cross_entropy sum %a, %y : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<f32>"),
      "[a,b][a]->[][a] a=2 sum b=3 decompose");
  EXPECT_EQ(rule("%a: tensor<2x3xf32>, %y: tensor<2xi64>, %l: tensor<2xf32>, %s: tensor<f32>",
                 "%0 = nn.cross_entropy_grad %a, %y, %l, %s : (tensor<2x3xf32>, tensor<2xi64>, "
                 "tensor<f32>) -> tensor<2x3xf32>"),
            "[a,b][a][a][]->[a,b] b=3 decompose linear 3");
}

// A padded row of class targets must be an ignored one, of probabilities 0.
TEST_F(ShardingRules, PaddingOfTargets) {
  Operation *op = parse("%a: tensor<2x3xf32>, %y: tensor<2xi64>",
                        "%0, %lse0 = nn.cross_entropy sum %a, %y ignore_index = 7 : (tensor<2x3xf32>, "
                        "tensor<2xi64>) -> tensor<f32>");
  ASSERT_TRUE(op);
  ShardingRule classes = cast<ShardingRuleOpInterface>(op).getShardingRule();
  ASSERT_EQ(classes.padding.size(), 2u);
  EXPECT_FALSE(classes.padding[0]);
  EXPECT_EQ(classes.padding[1], 7.0);

  op =
      parse("%a: tensor<2x3xf32>",
            "%0, %lse0 = nn.cross_entropy sum %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>");
  ASSERT_TRUE(op);
  EXPECT_TRUE(cast<ShardingRuleOpInterface>(op).getShardingRule().padding.empty());
}

TEST_F(ShardingRules, Updates) {
  EXPECT_EQ(rule("%p: tensor<4x2xf32>, %lr: tensor<f32>, %t: tensor<i64>",
                 "%0:3 = nn.adam_update %p, %p, %p, %p lr = %lr step = %t {beta1 = 0.9 : f64, "
                 "beta2 = 0.9 : f64, "
                 "eps = 0.1 : f64, weight_decay = 0.0 : f64} : tensor<4x2xf32>, tensor<f32>"),
            "[a,b][a,b][a,b][a,b][][]->[a,b][a,b][a,b]");
}

/// A device that holds rows from 6 on of an input of 8 rows.
struct SecondShard : LocalizeContext {
  RankedTensorType type;
  Value offset;

  RankedTensorType localResultType(unsigned) const override { return type; }
  int64_t globalOperandSize(unsigned, unsigned) const override { return 8; }
  Value operandOffset(OpBuilder &, unsigned, unsigned dim) const override {
    return dim == 0 ? offset : Value();
  }
  Value resultOffset(OpBuilder &builder, unsigned result, unsigned dim) const override {
    return operandOffset(builder, result, dim);
  }
};

/// What that device runs of an op whose first operand is `local` there, `offset` its first row; null where it is none.
template <typename Op> Op localize(Operation *op, Value local, Value offset, Type type) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  SecondShard shard;
  shard.type = cast<RankedTensorType>(type);
  shard.offset = offset;
  SmallVector<Value> results, operands(op->getOperands());
  operands[0] = local;
  if (failed(cast<ShardingRuleOpInterface>(op).localize(builder, operands, shard, results)))
    return {};
  return results.front().getDefiningOp<Op>();
}

// The offset of the shard is added to the one of an earlier partition.
TEST_F(ShardingRules, MaskOnShard) {
  Operation *op =
      parse("%a: tensor<8xf32>, %l: tensor<i64>, %o: tensor<i64>, %local: tensor<3xf32>",
            "%0 = nn.mask %a dim = 0 limit = %l offset = %o fill = 0.0 {nn.layer = \"h\"} : "
            "tensor<8xf32>");
  ASSERT_TRUE(op);
  Block &block = *op->getBlock();
  Value offset = block.getArgument(2), shard = block.getArgument(3);
  auto local = localize<nn::MaskOp>(op, shard, offset, shard.getType());
  ASSERT_TRUE(local);
  EXPECT_EQ(local.getType(), shard.getType());
  EXPECT_TRUE(local->hasAttr("nn.layer"));
  auto sum = local.getOffset().getDefiningOp<nn::AddOp>();
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum.getLhs(), block.getArgument(2));
  EXPECT_EQ(sum.getRhs(), offset);
}

// A shard of rows of 5 elements begins 5 elements later for each row; the offset of an earlier partition is added.
TEST_F(ShardingRules, DropoutOnShard) {
  Operation *op =
      parse("%a: tensor<8x5xf32>, %s: tensor<i64>, %t: tensor<i64>, %o: tensor<i64>, %local: tensor<3x5xf32>",
            "%0 = nn.dropout %a rate = 0.5 id = 2 seed = %s step = %t offset = %o global = [16, 5] "
            "{nn.layer = \"h\"} : tensor<8x5xf32>");
  ASSERT_TRUE(op);
  Block &block = *op->getBlock();
  Value offset = block.getArgument(2), shard = block.getArgument(4);
  auto local = localize<nn::DropoutOp>(op, shard, offset, shard.getType());
  ASSERT_TRUE(local);
  EXPECT_EQ(local.getType(), shard.getType());
  EXPECT_TRUE(local->hasAttr("nn.layer"));
  EXPECT_EQ(*local.getGlobal(), (ArrayRef<int64_t>{16, 5}));
  EXPECT_EQ(local.getSeed(), block.getArgument(1));
  auto sum = local.getOffset().getDefiningOp<nn::AddOp>();
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum.getLhs(), block.getArgument(3));
  auto elements = sum.getRhs().getDefiningOp<nn::MulOp>();
  ASSERT_TRUE(elements);
  EXPECT_EQ(elements.getLhs(), offset);
  auto stride = elements.getRhs().getDefiningOp<nn::ConstantOp>();
  EXPECT_EQ(cast<DenseIntElementsAttr>(stride.getValue()).getSplatValue<int64_t>(), 5);
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(ShardingRules, Dropout) {
  EXPECT_EQ(rule("%a: tensor<4x2xf32>, %s: tensor<i64>, %t: tensor<i64>",
                 "%0 = nn.dropout %a rate = 0.5 id = 2 seed = %s step = %t : tensor<4x2xf32>"),
            "[a,b][][]->[a,b] linear 0");
}

TEST_F(ShardingRules, DropoutPositions) {
  EXPECT_EQ(rule("%a: tensor<4x2xf32>, %s: tensor<i64>, %t: tensor<i64>, %p: tensor<2xi64>",
                 "%0 = nn.dropout %a rate = 0.5 id = 2 seed = %s step = %t positions = %p dim = 1 : tensor<4x2xf32>, "
                 "tensor<2xi64>"),
            "[a,b][][][c]->[a,b] c=2 whole linear 0");
  EXPECT_EQ(rule("%a: tensor<4x2xf32>, %p: tensor<4xi64>",
                 "%0 = nn.dropout %a rate = 0.5 id = 2 positions = %p dim = 0 : tensor<4x2xf32>, tensor<4xi64>"),
            "[a,b][c]->[a,b] c=4 whole linear 0");
}

// A shard along the dimension of positions takes those of its rows, and behind the last row -1; the offset stays that
// of an earlier partition over other dimensions.
TEST_F(ShardingRules, DropoutPositionsOnShard) {
  for (bool isAlong : {true, false}) {
    std::string dim = isAlong ? "0" : "1", rows = isAlong ? "8" : "5";
    Operation *op = parse(
        "%a: tensor<8x5xf32>, %s: tensor<i64>, %o: tensor<i64>, %p: tensor<" + rows +
            "xi64>, %local: tensor<3x5xf32>",
        "%0 = nn.dropout %a rate = 0.5 id = 2 seed = %s step = %s offset = %o global = [8, 10] positions = %p dim = " +
            dim + " : tensor<8x5xf32>, tensor<" + rows + "xi64>");
    ASSERT_TRUE(op);
    Block &block = *op->getBlock();
    Value offset = block.getArgument(1), shard = block.getArgument(4);
    auto local = localize<nn::DropoutOp>(op, shard, offset, shard.getType());
    ASSERT_TRUE(local);
    EXPECT_EQ(*local.getGlobal(), (ArrayRef<int64_t>{8, 10}));
    EXPECT_EQ(std::to_string(*local.getDim()), dim);
    EXPECT_TRUE(succeeded(verify(*module)));
    if (!isAlong) {
      EXPECT_EQ(local.getPositions(), block.getArgument(3));
      EXPECT_TRUE(local.getOffset().getDefiningOp<nn::AddOp>());
      continue;
    }
    EXPECT_EQ(local.getOffset(), block.getArgument(2));
    auto slice = local.getPositions().getDefiningOp<nn::DynamicSliceOp>();
    ASSERT_TRUE(slice);
    EXPECT_EQ(slice.getStart(), offset);
    auto padded = slice.getInput().getDefiningOp<nn::ConcatOp>();
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded.getType().getShape(), ArrayRef<int64_t>{11});
    EXPECT_EQ(padded.getInputs()[0], block.getArgument(3));
    auto absent = padded.getInputs()[1].getDefiningOp<nn::ConstantOp>();
    EXPECT_EQ(cast<DenseIntElementsAttr>(absent.getValue()).getSplatValue<int64_t>(), -1);
  }
}

// A strategy asks any op; an op that was told is not told again.
TEST_F(ShardingRules, PositionsAreTold) {
  Operation *op = parse("%a: tensor<4x2xf32>, %p: tensor<2xi64>",
                        "%0 = nn.dropout %a rate = 0.5 id = 2 : tensor<4x2xf32>");
  ASSERT_TRUE(op);
  auto positioned = dyn_cast<PositionedOpInterface>(op);
  ASSERT_TRUE(positioned);
  EXPECT_TRUE(positioned.dependsOnIndex(0) && positioned.dependsOnIndex(1));
  Value positions = op->getBlock()->getArgument(1);
  EXPECT_TRUE(succeeded(positioned.setPositions(positions, 1)));
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(cast<nn::DropoutOp>(op).getPositions(), positions);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  EXPECT_TRUE(failed(positioned.setPositions(positions, 0)));
  EXPECT_EQ(said,
            "'nn.dropout' op has positions along dimension 1 already, and cannot take those of dimension 0 as well");
}

TEST_F(ShardingRules, MergeAttention) {
  EXPECT_EQ(rule("%o: tensor<2x6x2x3x4xf32>, %l: tensor<2x6x2x3xf32>",
                 "%0:2 = nn.merge_attention %o, %l, %o, %l : tensor<2x6x2x3x4xf32>"),
            "[a,b,c,d,e][a,b,c,d][a,b,c,d,e][a,b,c,d]->[a,b,c,d,e][a,b,c,d]");
}

// A shard of the result begins at a place of the whole order; the input is whole in that dimension and may be sharded
// in others.
TEST_F(ShardingRules, Zigzag) {
  EXPECT_EQ(rule("%a: tensor<5x12xi64>", "%0 = nn.zigzag %a dim = 1 ranks = 3 : tensor<5x12xi64>"),
            "[a,b]->[a,c] b=12 passes c over 3 linear 0 moves");
  // Without two equal chunks for each rank.
  EXPECT_EQ(rule("%a: tensor<8x5xi64>", "%0 = nn.zigzag %a dim = 0 ranks = 3 : tensor<8x5xi64>"),
            "[a,b]->[c,b] a=8 whole linear 0 moves");
  EXPECT_EQ(rule("%a: tensor<8x5xi64>, %o: tensor<i64>",
                 "%0 = nn.zigzag %a dim = 0 ranks = 3 inverse offset = %o : tensor<8x5xi64> -> tensor<3x5xi64>"),
            "[a,b][]->[c,b] a=8 whole linear 0 moves");
  Operation *op = parse("%a: tensor<8x5xf32>, %o: tensor<i64>, %begin: tensor<i64>, %local: tensor<8x2xf32>",
                        "%0 = nn.zigzag %a dim = 0 ranks = 3 inverse offset = %o {nn.layer = \"h\"} : "
                        "tensor<8x5xf32> -> tensor<6x5xf32>");
  ASSERT_TRUE(op);
  Block &block = *op->getBlock();
  Value offset = block.getArgument(2), shard = block.getArgument(3);
  auto type = RankedTensorType::get({3, 2}, Float32Type::get(&context));
  auto local = localize<nn::ZigzagOp>(op, shard, offset, type);
  ASSERT_TRUE(local);
  EXPECT_EQ(local.getInput(), block.getArgument(3));
  EXPECT_EQ(local.getType(), type);
  EXPECT_TRUE(local.getInverse());
  EXPECT_EQ(local.getRanks(), 3u);
  EXPECT_TRUE(local->hasAttr("nn.layer"));
  auto sum = local.getOffset().getDefiningOp<nn::AddOp>();
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum.getLhs(), block.getArgument(1));
  EXPECT_EQ(sum.getRhs(), offset);
  EXPECT_TRUE(succeeded(verify(*module)));
}

// Over sharded classes, rows reduce three times forward; backward reads the log-sum-exp and reduces distributions
// alone.
TEST_F(ShardingRules, CrossEntropyDecomposes) {
  for (std::string targets : {"tensor<2xi64>", "tensor<2x3xf32>"})
    for (bool isGradient : {false, true}) {
      Operation *op = parse("%a: tensor<2x3xf32>, %y: " + targets + ", %l: tensor<2xf32>, %s: tensor<f32>",
                            isGradient ? "%0 = nn.cross_entropy_grad %a, %y, %l, %s : (tensor<2x3xf32>, " + targets +
                                             ", tensor<f32>) -> tensor<2x3xf32>"
                                       : "%0, %1 = nn.cross_entropy sum %a, %y : (tensor<2x3xf32>, " + targets +
                                             ") -> tensor<f32>");
      ASSERT_TRUE(op);
      OpBuilder builder(op);
      auto values = cast<ShardingRuleOpInterface>(op).decompose(builder);
      ASSERT_TRUE(succeeded(values));
      ASSERT_EQ(values->size(), op->getNumResults());
      for (auto [value, result] : llvm::zip(*values, op->getResults()))
        EXPECT_EQ(value.getType(), result.getType());
      SmallVector<StringRef> kinds;
      for (auto reduce : op->getBlock()->getOps<nn::ReduceOp>())
        if (reduce.getKeepDims())
          kinds.push_back(nn::stringifyReduce(reduce.getKind()));
      bool isFloat = targets == "tensor<2x3xf32>";
      EXPECT_EQ(kinds, isGradient ? SmallVector<StringRef>(isFloat, "sum")
                                  : (SmallVector<StringRef>{"max", "sum", "sum"}));
      EXPECT_TRUE(succeeded(verify(*module)));
    }
}

TEST_F(ShardingRules, ConstantOnShard) {
  Operation *op = parse("", "%0 = nn.constant dense<2.0> : tensor<8xf32>");
  ASSERT_TRUE(op);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  SecondShard shard;
  shard.type = RankedTensorType::get({3}, builder.getF32Type());
  SmallVector<Value> results;
  ASSERT_TRUE(succeeded(cast<ShardingRuleOpInterface>(op).localize(builder, {}, shard, results)));
  EXPECT_EQ(results.front().getType(), shard.type);
  EXPECT_TRUE(succeeded(verify(*module)));
}

// Softmax along a sharded dimension becomes ops that have a reduction there.
TEST_F(ShardingRules, SoftmaxDecomposes) {
  for (StringRef name : {"softmax", "log_softmax"}) {
    Operation *op =
        parse("%a: tensor<2x3xf32>", ("%0 = nn." + name + " %a dim = 1 : tensor<2x3xf32>").str());
    ASSERT_TRUE(op);
    OpBuilder builder(op);
    auto values = cast<ShardingRuleOpInterface>(op).decompose(builder);
    ASSERT_TRUE(succeeded(values));
    EXPECT_EQ(values->front().getType(), op->getResult(0).getType());
    SmallVector<StringRef> kinds;
    for (auto reduce : op->getBlock()->getOps<nn::ReduceOp>())
      kinds.push_back(nn::stringifyReduce(reduce.getKind()));
    EXPECT_EQ(kinds, (SmallVector<StringRef>{"max", "sum"}));
    EXPECT_TRUE(succeeded(verify(*module)));
  }
}

// What masks write: the least value of a type really is the least one, and what no double holds
// is refused instead of rounded.
TEST_F(ShardingRules, IdentitiesOfReductions) {
  Builder builder(&context);
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  EXPECT_EQ(reductionIdentity(ReduceKind::Sum, i64), 0.0);
  EXPECT_EQ(reductionIdentity(ReduceKind::Max, f32), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(reductionIdentity(ReduceKind::Min, f32), std::numeric_limits<double>::infinity());
  EXPECT_EQ(reductionIdentity(ReduceKind::Max, i32), -2147483648.0);
  EXPECT_EQ(reductionIdentity(ReduceKind::Min, i32), 2147483647.0);
  EXPECT_EQ(reductionIdentity(ReduceKind::Max, i64), -0x1p63);
  EXPECT_EQ(reductionIdentity(ReduceKind::Min, i64), std::nullopt);
}

} // namespace
