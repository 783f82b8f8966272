// The gradient of every differentiable op against central differences, in f64. The loss is a
// weighted sum of the op's result, so that every element counts differently.
#include "TestSupport.h"

#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace mlir;

namespace shoal::interp {
namespace {

struct GradientCase {
  const char *name;
  std::vector<std::string> parameters; // types of %a, %b, ...
  std::string body;                    // defines %y from them
  std::string result;                  // type of %y
  std::string range = "uniform(-1.0, 1.0)";
};

std::ostream &operator<<(std::ostream &os, const GradientCase &test) { return os << test.name; }

std::string programOf(const GradientCase &test) {
  std::string text = "func.func @f(";
  for (size_t p = 0; p < test.parameters.size(); ++p) {
    std::string name(1, char('a' + p));
    text += "%" + name + ": " + test.parameters[p] + " {nn.param = #nn.param<\"" + name +
            "\", init = " + test.range + ">}, ";
  }
  text += "%weight: " + test.result +
          " {nn.input = #nn.input<\"weight\", unbatched>}) -> "
          "(tensor<f64> {nn.loss}) {\n" +
          test.body + "\n";
  text += "%weighted = nn.mul %y, %weight : (" + test.result + ", " + test.result + ") -> " +
          test.result + "\n";
  std::string dims;
  size_t rank = std::count(test.result.begin(), test.result.end(), 'x');
  for (size_t d = 0; d < rank; ++d)
    dims += (d ? ", " : "") + std::to_string(d);
  text += rank ? "%loss = nn.reduce sum %weighted dims = [" + dims + "] : " + test.result +
                     " -> tensor<f64>\nreturn %loss : tensor<f64> }"
               : "return %weighted : tensor<f64> }";
  return text;
}

class DifferentiationTest : public InterpreterTest {
protected:
  LogicalResult differentiate(ModuleOp module) {
    PassManager manager(&context);
    manager.addPass(nn::createExplicitCountsPass());
    manager.addPass(nn::createDifferentiatePass());
    return manager.run(module);
  }
};

class GradientTest : public DifferentiationTest,
                     public ::testing::WithParamInterface<GradientCase> {};

TEST_P(GradientTest, agreesWithCentralDifferences) {
  OwningOpRef<ModuleOp> module = parse(programOf(GetParam()));
  ASSERT_TRUE(module);
  OwningOpRef<ModuleOp> derived(module->clone());
  ASSERT_TRUE(succeeded(differentiate(*derived))) << programOf(GetParam());
  func::FuncOp forward = function(*module), backward = function(*derived);
  unsigned parameters = GetParam().parameters.size();
  ASSERT_EQ(backward.getNumArguments(), parameters + 1);
  ASSERT_EQ(backward.getNumResults(), parameters + 1);

  TensorList arguments;
  for (unsigned i = 0; i <= parameters; ++i)
    arguments.push_back(*makeArgument(forward, i, 0, ArgumentOptions{}));
  FailureOr<TensorList> results = runGlobal(backward, arguments);
  ASSERT_TRUE(succeeded(results));

  const double h = 1e-5;
  for (unsigned p = 0; p < parameters; ++p)
    for (int64_t k = 0; k < arguments[p].size(); ++k) {
      auto lossAt = [&](double shift) {
        TensorList moved = arguments;
        moved[p].f[k] += shift;
        return (*runGlobal(forward, moved))[0].f[0];
      };
      double numeric = (lossAt(h) - lossAt(-h)) / (2 * h), exact = (*results)[p + 1].f[k];
      EXPECT_NEAR(exact, numeric, 1e-8 * (1 + std::abs(numeric)))
          << "parameter " << p << " element " << k;
    }
}

// Unary ops, binary ops on operands that broadcast, matmuls with every transpose.
std::vector<GradientCase> allCases() {
  const std::string t34 = "tensor<3x4xf64>", t4 = "tensor<4xf64>", t31 = "tensor<3x1xf64>",
                    scalar = "tensor<f64>", positive = "uniform(0.5, 2.0)";
  std::vector<GradientCase> cases;
  for (const char *op : {"neg", "exp", "tanh", "relu", "log", "sqrt", "rsqrt", "sigmoid", "silu", "erf", "erfc", "sin",
                         "cos"}) {
    bool needsPositive = std::string("log sqrt rsqrt").find(op) != std::string::npos;
    cases.push_back({op,
                     {t34},
                     "%y = nn." + std::string(op) + " %a : " + t34,
                     t34,
                     needsPositive ? positive : "uniform(-1.0, 1.0)"});
  }
  for (const char *op : {"add", "sub", "mul", "div", "maximum", "minimum"})
    for (auto [a, b] : {std::pair{t34, t34}, {t34, t4}, {t31, t4}, {scalar, t34}}) {
      const std::string &result = t34;
      cases.push_back(
          {op,
           {a, b},
           "%y = nn." + std::string(op) + " %a, %b : (" + a + ", " + b + ") -> " + result,
           result,
           positive});
    }
  auto add = [&](const char *name, std::vector<std::string> parameters, std::string body,
                 std::string result, std::string range = "uniform(-1.0, 1.0)") {
    cases.push_back({name, std::move(parameters), std::move(body), std::move(result), range});
  };
  auto matmul = [&](const char *name, std::string a, std::string b, std::string result,
                    std::string attributes = "") {
    add(name, {a, b},
        "%y = nn.matmul %a, %b " + attributes + " : (" + a + ", " + b + ") -> " + result, result);
  };
  add("gelu_tanh", {t34}, "%y = nn.gelu tanh %a : " + t34, t34, "uniform(-3.0, 3.0)");
  add("gelu_erf", {t34}, "%y = nn.gelu erf %a : " + t34, t34, "uniform(-3.0, 3.0)");
  matmul("matmul", "tensor<3x4xf64>", "tensor<4x2xf64>", "tensor<3x2xf64>");
  matmul("matmul_ta", "tensor<4x3xf64>", "tensor<4x2xf64>", "tensor<3x2xf64>", "{transpose_a}");
  matmul("matmul_tb", "tensor<3x4xf64>", "tensor<2x4xf64>", "tensor<3x2xf64>", "{transpose_b}");
  matmul("matmul_tatb", "tensor<4x3xf64>", "tensor<2x4xf64>", "tensor<3x2xf64>",
         "{transpose_a, transpose_b}");
  matmul("batch", "tensor<2x3x4xf64>", "tensor<2x4x5xf64>", "tensor<2x3x5xf64>");
  matmul("batch_ta", "tensor<2x4x3xf64>", "tensor<2x4x5xf64>", "tensor<2x3x5xf64>",
         "{transpose_a}");
  matmul("batch_tb", "tensor<2x3x4xf64>", "tensor<2x5x4xf64>", "tensor<2x3x5xf64>",
         "{transpose_b}");
  matmul("batch_tatb", "tensor<2x4x3xf64>", "tensor<2x5x4xf64>", "tensor<2x3x5xf64>",
         "{transpose_a, transpose_b}");
  matmul("batches", "tensor<2x2x3x4xf64>", "tensor<2x2x4x2xf64>", "tensor<2x2x3x2xf64>");
  matmul("shared_b", "tensor<2x3x4xf64>", "tensor<4x5xf64>", "tensor<2x3x5xf64>");
  matmul("shared_b_ta", "tensor<2x4x3xf64>", "tensor<4x5xf64>", "tensor<2x3x5xf64>",
         "{transpose_a}");
  matmul("shared_b_tb", "tensor<2x3x4xf64>", "tensor<5x4xf64>", "tensor<2x3x5xf64>",
         "{transpose_b}");
  matmul("shared_b_tatb", "tensor<2x4x3xf64>", "tensor<5x4xf64>", "tensor<2x3x5xf64>",
         "{transpose_a, transpose_b}");
  matmul("sum_batch", "tensor<2x3x4xf64>", "tensor<2x4x5xf64>", "tensor<3x5xf64>", "{sum_batch}");
  matmul("sum_batch_ta", "tensor<2x4x3xf64>", "tensor<2x4x5xf64>", "tensor<3x5xf64>",
         "{sum_batch, transpose_a}");
  matmul("sum_batch_tb", "tensor<2x3x4xf64>", "tensor<2x5x4xf64>", "tensor<3x5xf64>",
         "{sum_batch, transpose_b}");
  matmul("sum_batch_tatb", "tensor<2x4x3xf64>", "tensor<2x5x4xf64>", "tensor<3x5xf64>",
         "{sum_batch, transpose_a, transpose_b}");
  // Each operand with one and two inner dimensions, both transposed and not.
  auto tensordot = [&](const char *name, std::string a, std::string b, int axes,
                       std::string result, std::string attributes = "") {
    a = "tensor<" + a + "xf64>", b = "tensor<" + b + "xf64>", result = "tensor<" + result + "f64>";
    add(name, {a, b},
        "%y = nn.tensordot %a, %b axes = " + std::to_string(axes) + " " + attributes + " : (" + a +
            ", " + b + ") -> " + result,
        result);
  };
  tensordot("tensordot", "2x3x4", "4x5x2", 1, "2x3x5x2x");
  tensordot("tensordot_ta", "3x4x2", "3x4x5", 2, "2x5x", "{transpose_a}");
  tensordot("tensordot_tb", "5x3x4", "2x2x3x4", 2, "5x2x2x", "{transpose_b}");
  tensordot("tensordot_tatb", "4x2x3", "5x4", 1, "2x3x5x", "{transpose_a, transpose_b}");
  tensordot("tensordot_outer", "2x3", "4", 0, "2x3x4x");
  tensordot("tensordot_whole", "2x3", "2x3", 2, "", "{transpose_b}");
  // Rows that are named twice, once and never.
  add("embedding", {"tensor<4x3xf64>"},
      "%ids = nn.constant dense<[[2, 0], [2, 3]]> : tensor<2x2xi64>\n"
      "%y = nn.embedding %a, %ids : (tensor<4x3xf64>, tensor<2x2xi64>) -> tensor<2x2x3xf64>",
      "tensor<2x2x3xf64>");
  // A table as input and as output, transposed.
  add("embedding_tied", {"tensor<4x3xf64>"},
      "%ids = nn.constant dense<[1, 1, 3]> : tensor<3xi64>\n"
      "%0 = nn.embedding %a, %ids : (tensor<4x3xf64>, tensor<3xi64>) -> tensor<3x3xf64>\n"
      "%y = nn.tensordot %0, %a axes = 1 {transpose_b} : (tensor<3x3xf64>, tensor<4x3xf64>) -> "
      "tensor<3x4xf64>",
      "tensor<3x4xf64>");
  add("weight_used_twice", {"tensor<1x2xf64>", "tensor<2x2xf64>"},
      "%0 = nn.matmul %a, %b : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>\n"
      "%y = nn.matmul %0, %b : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>",
      "tensor<1x2xf64>");
  add("value_used_thrice", {t4},
      "%0 = nn.tanh %a : tensor<4xf64>\n"
      "%1 = nn.mul %0, %0 : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>\n"
      "%y = nn.add %1, %0 : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>",
      t4);
  add("select", {t34, t34},
      "%zero = nn.constant dense<0.1> : tensor<f64>\n"
      "%p = nn.compare gt %a, %zero : (tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xi1>\n"
      "%y = nn.select %p, %a, %b : (tensor<3x4xi1>, tensor<3x4xf64>, tensor<3x4xf64>) -> "
      "tensor<3x4xf64>",
      t34);
  add("select_broadcast", {t4, scalar},
      "%p = nn.constant dense<[[true], [false], [true]]> : tensor<3x1xi1>\n"
      "%y = nn.select %p, %a, %b : (tensor<3x1xi1>, tensor<4xf64>, tensor<f64>) -> "
      "tensor<3x4xf64>",
      t34);
  add("cast", {t4},
      "%0 = nn.cast %a : tensor<4xf64> -> tensor<4xf32>\n"
      "%y = nn.cast %0 : tensor<4xf32> -> tensor<4xf64>",
      t4);
  add("mask", {t34},
      "%limit = nn.constant dense<5> : tensor<i64>\n%offset = nn.constant dense<3> : tensor<i64>\n"
      "%y = nn.mask %a dim = 1 limit = %limit offset = %offset fill = 7.0 : tensor<3x4xf64>",
      t34);
  add("reshape", {t34}, "%y = nn.reshape %a : tensor<3x4xf64> -> tensor<2x6xf64>",
      "tensor<2x6xf64>");
  add("transpose", {"tensor<2x3x4xf64>"},
      "%y = nn.transpose %a [1, 2, 0] : tensor<2x3x4xf64> -> tensor<3x4x2xf64>",
      "tensor<3x4x2xf64>");
  add("broadcast", {t31}, "%y = nn.broadcast %a : tensor<3x1xf64> -> tensor<2x3x4xf64>",
      "tensor<2x3x4xf64>");
  add("slice", {t34}, "%y = nn.slice %a dim = 1 start = 1 : tensor<3x4xf64> -> tensor<3x2xf64>",
      "tensor<3x2xf64>");
  add("pad", {t34}, "%y = nn.pad %a dim = 0 low = 1 : tensor<3x4xf64> -> tensor<6x4xf64>",
      "tensor<6x4xf64>");
  add("concat", {t34, "tensor<2x4xf64>"},
      "%y = nn.concat %a, %b, %a dim = 0 : (tensor<3x4xf64>, tensor<2x4xf64>, tensor<3x4xf64>) -> "
      "tensor<8x4xf64>",
      "tensor<8x4xf64>");
  add("dynamic_slice", {t34},
      "%s = nn.constant dense<5> : tensor<i64>\n"
      "%y = nn.dynamic_slice %a dim = 0 start = %s : tensor<3x4xf64> -> tensor<2x4xf64>",
      "tensor<2x4xf64>");
  add("dynamic_update_slice", {t34, "tensor<3x2xf64>"},
      "%s = nn.constant dense<1> : tensor<i64>\n"
      "%y = nn.dynamic_update_slice %a, %b dim = 1 start = %s : tensor<3x4xf64>, tensor<3x2xf64>",
      t34);
  // Each of the three results, so that their cotangents meet in the input.
  const std::string t3 = "tensor<3xf64>";
  for (const char *type : {"tensor<4x3xf64>", "tensor<2x3x2xf64>", "tensor<1x3xf64>"})
    add("batch_norm", {type, t3, t3, t3, t3},
        "%0:3 = nn.batch_norm %a, %b, %c, %d, %e momentum = 0.3 eps = 0.25 : " + std::string(type) +
            ", tensor<3xf64>\n"
            "%1 = nn.mul %0#0, %0#0 : (" +
            std::string(type) + ", " + std::string(type) + ") -> " + std::string(type) +
            "\n"
            "%2 = nn.reduce sum %1 dims = [" +
            std::string(std::string(type).size() > 16 ? "0, 2" : "0") + "] : " + std::string(type) +
            " -> tensor<3xf64>\n"
            "%3 = nn.mul %2, %0#1 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>\n"
            "%y = nn.add %3, %0#2 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>",
        t3);
  // All results, so that cotangents of the statistics meet that of the rows.
  const std::string t23 = "tensor<2x3xf64>", t234 = "tensor<2x3x4xf64>",
                    toRows = " : (" + t23 + ", " + t23 + ") -> " + t23;
  add("layer_norm", {t234, t4, t4}, "%y, %m, %r = nn.layer_norm %a, %b, %c eps = 0.1 : " + t234 + ", " + t4, t234);
  add("layer_norm_statistics", {t234, t4, t4},
      "%0:3 = nn.layer_norm %a, %b, %c eps = 0.1 : " + t234 + ", " + t4 +
          "\n%1 = nn.mul %0#0, %0#0 : (" + t234 + ", " + t234 + ") -> " + t234 +
          "\n%2 = nn.reduce sum %1 dims = [2] : " + t234 + " -> " + t23 + "\n%3 = nn.mul %2, %0#1" + toRows +
          "\n%y = nn.add %3, %0#2" + toRows,
      t23);
  add("layer_norm_mean", {t234},
      "%s = nn.constant dense<1.5> : tensor<4xf64>\n%0, %y, %r = nn.layer_norm %a, %s, %s eps = 0.1 : " + t234 + ", " +
          t4,
      t23);
  add("layer_norm_of_one_row", {t4, t4, t4}, "%y, %m, %r = nn.layer_norm %a, %b, %c eps = 0.1 : " + t4 + ", " + t4, t4);
  add("rms_norm", {t234, t4}, "%y, %r = nn.rms_norm %a, %b eps = 0.1 : " + t234 + ", " + t4, t234);
  add("rms_norm_statistic", {t234, t4},
      "%0:2 = nn.rms_norm %a, %b eps = 0.1 : " + t234 + ", " + t4 +
          "\n%1 = nn.reduce sum %0#0 dims = [2] : " + t234 + " -> " + t23 + "\n%y = nn.mul %1, %0#1" + toRows,
      t23);
  for (std::string inverse : {"", "{inverse} "}) {
    add("rope", {"tensor<2x3x2x6xf64>"},
        "%p = nn.constant dense<[0, 7, 100]> : tensor<3xi64>\n%y = nn.rope %a, %p base = 50.0 " + inverse +
            ": tensor<2x3x2x6xf64>, tensor<3xi64>",
        "tensor<2x3x2x6xf64>");
    add("rotate", {"tensor<2x3x1x2x2xf64>", "tensor<3x2xf64>", "tensor<3x2xf64>"},
        "%y = nn.rotate %a, %b, %c " + inverse + ": tensor<2x3x1x2x2xf64>, tensor<3x2xf64>", "tensor<2x3x1x2x2xf64>");
    add("rotate_by_batch", {"tensor<2x3x2x2xf64>", "tensor<2x3x2xf64>", "tensor<2x3x2xf64>"},
        "%y = nn.rotate %a, %b, %c " + inverse + ": tensor<2x3x2x2xf64>, tensor<2x3x2xf64>", "tensor<2x3x2x2xf64>");
  }
  add("reduce_sum", {t234},
      "%y = nn.reduce sum %a dims = [0, 2] : tensor<2x3x4xf64> -> tensor<3xf64>", "tensor<3xf64>");
  add("reduce_sum_keep", {"tensor<2x3x4xf64>"},
      "%y = nn.reduce sum %a dims = [1] {keep_dims} : tensor<2x3x4xf64> -> tensor<2x1x4xf64>",
      "tensor<2x1x4xf64>");
  add("reduce_mean", {t34}, "%y = nn.reduce mean %a dims = [0] : tensor<3x4xf64> -> tensor<4xf64>",
      t4);
  add("reduce_max", {t34}, "%y = nn.reduce max %a dims = [1] : tensor<3x4xf64> -> tensor<3xf64>",
      "tensor<3xf64>");
  add("reduce_max_keep", {"tensor<2x3x4xf64>"},
      "%y = nn.reduce max %a dims = [0, 2] {keep_dims} : tensor<2x3x4xf64> -> tensor<1x3x1xf64>",
      "tensor<1x3x1xf64>");
  // Of two equal elements each gets half, which is also the central difference.
  add("reduce_max_ties", {"tensor<3x2xf64>"},
      "%y = nn.reduce max %a dims = [1] : tensor<3x2xf64> -> tensor<3xf64>", "tensor<3xf64>",
      "constant(1.0)");
  for (const char *op : {"softmax", "log_softmax"})
    for (const char *dim : {"0", "1", "2"})
      add(op, {"tensor<2x3x4xf64>"},
          "%y = nn." + std::string(op) + " %a dim = " + dim + " : tensor<2x3x4xf64>",
          "tensor<2x3x4xf64>");
  auto attention = [&](const char *name, int groups, const std::string &masks, const std::string &segments = "") {
    std::string q = "tensor<2x4x2x" + std::to_string(groups) + "x3xf64>", k = "tensor<2x4x2x3xf64>";
    std::string types = q + ", " + k + ", " + k + (segments.empty() ? "" : ", tensor<2x4xi64>, tensor<2x4xi64>");
    add(name, {q, k, k},
        segments + "\n%y, %lse = nn.attention %a, %b, %c " + masks + " scale = 0.7 : (" + types + ") -> " + q, q);
  };
  // Of the second row's queries the first sees nothing.
  std::string segments = "%s = nn.constant dense<[[0, 0, 1, 1], [5, 2, 3, 2]]> : tensor<2x4xi64>\n"
                         "%t = nn.constant dense<[[0, 0, 1, 1], [2, 2, 3, 3]]> : tensor<2x4xi64>";
  attention("attention", 1, "");
  attention("attention_groups", 3, "");
  attention("attention_causal", 2, "causal");
  attention("attention_window", 1, "window = 2");
  attention("attention_causal_window", 2, "causal window = 2");
  attention("attention_segments", 2, "segments = %s, %t", segments);
  attention("attention_all_masks", 3, "segments = %s, %t causal window = 3", segments);
  add("attention_cross", {"tensor<1x2x1x2x3xf64>", "tensor<1x5x1x3xf64>", "tensor<1x5x1x3xf64>"},
      "%y, %lse = nn.attention %a, %b, %c scale = 1.0 : (tensor<1x2x1x2x3xf64>, tensor<1x5x1x3xf64>, "
      "tensor<1x5x1x3xf64>) -> tensor<1x2x1x2x3xf64>",
      "tensor<1x2x1x2x3xf64>");
  // The third query does not exist, nor does the second key; the fourth query comes before all keys.
  for (const char *masks : {"causal", "window = 2", "causal window = 3", ""})
    add("attention_positions", {"tensor<1x4x1x2x3xf64>", "tensor<1x5x1x3xf64>", "tensor<1x5x1x3xf64>"},
        "%p = nn.constant dense<[7, 3, -1, 0]> : tensor<4xi64>\n%r = nn.constant dense<[2, -5, 6, 1, 4]> : "
        "tensor<5xi64>\n"
        "%y, %lse = nn.attention %a, %b, %c positions = %p, %r " +
            std::string(masks) +
            " scale = 0.7 : (tensor<1x4x1x2x3xf64>, tensor<1x5x1x3xf64>, tensor<1x5x1x3xf64>, tensor<4xi64>, "
            "tensor<5xi64>) -> tensor<1x4x1x2x3xf64>",
        "tensor<1x4x1x2x3xf64>");
  for (const char *ranks : {"2", "3", "9"})
    for (const char *inverse : {"", " inverse"})
      add("zigzag", {"tensor<7x2xf64>"},
          "%y = nn.zigzag %a dim = 0 ranks = " + std::string(ranks) + inverse + " : tensor<7x2xf64>",
          "tensor<7x2xf64>");
  // Shards inside, across the end, and past it.
  for (const char *offset : {"2", "6", "9"})
    add("zigzag_shard", {"tensor<7x2xf64>"},
        "%o = nn.constant dense<" + std::string(offset) + "> : tensor<i64>\n"
        "%y = nn.zigzag %a dim = 0 ranks = 3 offset = %o : tensor<7x2xf64> -> tensor<3x2xf64>", "tensor<3x2xf64>");
  add("dropout", {t34},
      "%s = nn.constant dense<7> : tensor<i64>\n%t = nn.constant dense<2> : tensor<i64>\n"
      "%y = nn.dropout %a rate = 0.3 id = 1 seed = %s step = %t : tensor<3x4xf64>",
      t34);
  add("dropout_positions", {t34},
      "%s = nn.constant dense<7> : tensor<i64>\n%t = nn.constant dense<2> : tensor<i64>\n"
      "%p = nn.constant dense<[5, 0, 3, 1]> : tensor<4xi64>\n"
      "%y = nn.dropout %a rate = 0.3 id = 1 seed = %s step = %t global = [3, 6] positions = %p dim = 1 : "
      "tensor<3x4xf64>, tensor<4xi64>",
      t34);
  for (std::string reduction : {"mean", "sum"}) {
    add("mse_loss", {t34, t34},
        "%y = nn.mse_loss " + reduction +
            " %a, %b : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<f64>",
        scalar);
    add("cross_entropy", {"tensor<4x3xf64>"},
        "%t = nn.constant dense<[2, 0, -100, 1]> : tensor<4xi64>\n%y, %y_lse = nn.cross_entropy " +
            reduction + " %a, %t : (tensor<4x3xf64>, tensor<4xi64>) -> tensor<f64>",
        scalar);
    add("cross_entropy_ignored", {"tensor<2x3xf64>"},
        "%t = nn.constant dense<7> : tensor<2xi32>\n%y, %y_lse = nn.cross_entropy " + reduction +
            " %a, %t ignore_index = 7 : (tensor<2x3xf64>, tensor<2xi32>) -> tensor<f64>",
        scalar);
    add("cross_entropy_probabilities", {"tensor<2x2x3xf64>"},
        "%t = nn.constant dense<[[[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], [[0.1, 0.1, 0.1], "
        "[0.0, 0.5, 0.5]]]> : tensor<2x2x3xf64>\n%y, %y_lse = nn.cross_entropy " +
            reduction + " %a, %t : (tensor<2x2x3xf64>, tensor<2x2x3xf64>) -> tensor<f64>",
        scalar);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, ::testing::ValuesIn(allCases()),
                         [](const ::testing::TestParamInfo<GradientCase> &info) {
                           return std::to_string(info.index) + "_" + info.param.name;
                         });

// Far from zero activations are straight lines, also where squares and cubes overflow.
TEST_F(DifferentiationTest, activationsFarFromZero) {
  for (auto [op, slope] : {std::pair("gelu tanh", 1.0), {"gelu erf", 1.0}, {"silu", 1.0}, {"sigmoid", 0.0},
                           {"tanh", 0.0}, {"erf", 0.0}, {"erfc", 0.0}})
    for (const char *x : {"1e4", "1e20", "1e160", "1.7e308"})
      for (bool negative : {false, true}) {
        std::string value = (negative ? "-" : "") + std::string(x);
        value.insert(value.find('e'), value.find('.') == std::string::npos ? ".0" : "");
        GradientCase test{op, {"tensor<f64>"}, "%y = nn." + std::string(op) + " %a : tensor<f64>", "tensor<f64>",
                          "constant(" + value + ")"};
        OwningOpRef<ModuleOp> module = parse(programOf(test));
        ASSERT_TRUE(module);
        ASSERT_TRUE(succeeded(differentiate(*module)));
        func::FuncOp model = function(*module);
        TensorList arguments;
        for (unsigned i = 0; i < 2; ++i)
          arguments.push_back(*makeArgument(model, i, 0, ArgumentOptions{}));
        arguments[1].f[0] = 1;
        FailureOr<TensorList> results = runGlobal(model, arguments);
        ASSERT_TRUE(succeeded(results));
        EXPECT_EQ((*results)[1].f[0], negative ? 0.0 : slope) << op << " at " << value;
      }
}

// batch_norm has a gradient of its own for programs that count no rows: that of its parts.
TEST_F(DifferentiationTest, batchNormItself) {
  std::string type = "tensor<2x3x2xf64>", statistic = "tensor<3xf64>";
  std::vector<std::string> types = {type, statistic, statistic, statistic, statistic};
  GradientCase test{"batch_norm", types,
                    "%0:3 = nn.batch_norm %a, %b, %c, %d, %e momentum = 0.3 eps = 0.25 : " + type + ", " +
                        statistic + "\n%1 = nn.mul %0#0, %0#0 : (" + type + ", " + type + ") -> " + type +
                        "\n%2 = nn.reduce sum %1 dims = [0, 2] : " + type + " -> " + statistic +
                        "\n%3 = nn.mul %2, %0#1 : (" + statistic + ", " + statistic + ") -> " + statistic +
                        "\n%y = nn.add %3, %0#2 : (" + statistic + ", " + statistic + ") -> " + statistic,
                    statistic};
  OwningOpRef<ModuleOp> whole = parse(programOf(test));
  OwningOpRef<ModuleOp> parts(whole->clone());
  ASSERT_TRUE(succeeded(differentiate(*parts)));
  PassManager manager(&context);
  manager.addPass(nn::createDifferentiatePass());
  ASSERT_TRUE(succeeded(manager.run(*whole)));
  TensorList arguments;
  for (unsigned i = 0; i <= types.size(); ++i)
    arguments.push_back(*makeArgument(function(*whole), i, 0, ArgumentOptions{}));
  TensorList expected = *runGlobal(function(*parts), arguments), got = *runGlobal(function(*whole), arguments);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t r = 0; r < got.size(); ++r)
    for (int64_t k = 0; k < got[r].size(); ++k)
      EXPECT_NEAR(got[r].f[k], expected[r].f[k], 1e-12 * (1 + std::abs(expected[r].f[k]))) << r << ", " << k;
}

// The gradient of relu at 0 is 0; of two equal operands of maximum and minimum each gets half.
TEST_F(DifferentiationTest, kinks) {
  auto gradientsOf = [&](const std::string &op, int64_t parameters) {
    std::string arguments, names, types;
    for (int64_t p = 0; p < parameters; ++p) {
      std::string name(1, char('a' + p));
      arguments += (p ? ", %" : "%") + name + ": tensor<f64> {nn.param = #nn.param<\"" + name +
                   "\", init = zeros>}";
    }
    OwningOpRef<ModuleOp> module =
        parse("func.func @f(" + arguments + ") -> (tensor<f64> {nn.loss}) {\n%y = nn." + op +
              "\nreturn %y : tensor<f64> }");
    EXPECT_TRUE(succeeded(differentiate(*module)));
    FailureOr<TensorList> results = runGlobal(
        function(*module), TensorList(parameters, Tensor(type({}, Float64Type::get(&context)))));
    EXPECT_TRUE(succeeded(results));
    return *results;
  };
  EXPECT_EQ(gradientsOf("relu %a : tensor<f64>", 1)[1].f[0], 0.0);
  for (std::string op : {"maximum", "minimum"}) {
    TensorList results = gradientsOf(op + " %a, %b : (tensor<f64>, tensor<f64>) -> tensor<f64>", 2);
    EXPECT_EQ(results[1].f[0], 0.5) << op;
    EXPECT_EQ(results[2].f[0], 0.5) << op;
  }
}

} // namespace
} // namespace shoal::interp
