// Mathematical functions over their whole ranges and at the edges of arithmetic. The GPU's are
// expansions of our own in f64 and MLIR's polynomials in f32; the reference is the C library.
#include "KernelTester.h"

#include "gtest/gtest.h"

using shoal::test::Inputs;
using shoal::test::KernelTester;

namespace {

std::string unary(const std::string &op, const std::string &type) {
  return "func.func private @k(%a: tensor<211x" + type + ">) -> tensor<211x" + type +
         "> attributes {exec.kernel} {\n  %0 = nn." + op + " %a : tensor<211x" + type +
         ">\n  return %0 : tensor<211x" + type + ">\n}\n";
}

TEST(Math, DoublePrecision) {
  KernelTester tester;
  constexpr double kTolerance = 2e-15;
  for (auto [low, high] : {std::pair(-1e-3, 1e-3), {-1.0, 1.0}, {-30.0, 30.0}, {-708.0, 700.0}})
    for (std::string op : {"exp", "tanh"})
      tester.check(unary(op, "f64"), {.low = low, .high = high}, kTolerance);
  for (auto [low, high] : {std::pair(1e-310, 1e-300), {0.99, 1.01}, {0.1, 10.0}, {1.0, 1e308}})
    tester.check(unary("log", "f64"), {.low = low, .high = high}, kTolerance);
  for (double scale : {1e-3, 30.0, 1e6, 1e12})
    for (std::string op : {"sin", "cos"})
      tester.check(unary(op, "f64"), {.low = -scale, .high = scale}, kTolerance);
  for (double scale : {1e-3, 3.0, 30.0})
    tester.check(unary("erf", "f64"), {.low = -scale, .high = scale}, kTolerance);
}

TEST(Math, SinglePrecision) {
  KernelTester tester;
  constexpr double kTolerance = 2e-6;
  for (auto [low, high] : {std::pair(-1e-3, 1e-3), {-1.0, 1.0}, {-30.0, 30.0}, {-87.0, 88.0}})
    for (std::string op : {"exp", "tanh"})
      tester.check(unary(op, "f32"), {.low = low, .high = high}, kTolerance);
  for (auto [low, high] : {std::pair(0.99, 1.01), {0.1, 10.0}, {1.0, 1e38}})
    tester.check(unary("log", "f32"), {.low = low, .high = high}, kTolerance);
  for (double scale : {1e-3, 30.0, 1e6})
    for (std::string op : {"sin", "cos"})
      tester.check(unary(op, "f32"), {.low = -scale, .high = scale}, kTolerance);
}

/// Functions that fall to 0 keep their digits on the way, into the subnormal numbers.
TEST(Math, Tails) {
  KernelTester tester;
  for (auto [low, high] : {std::pair(-12.0, 12.0), {-37.0, -12.0}, {12.0, 28.0}, {-1e-3, 1e-3}}) {
    tester.checkTails(unary("erfc", "f64"), {.low = low, .high = high}, 1e-14);
    tester.checkTails(unary("erfc", "f32"), {.low = low, .high = high}, 1e-6);
    // The reference rounds x / sqrt(2), which counts x^2 times, the kernel does not.
    tester.checkTails(unary("gelu erf", "f64"), {.low = low, .high = high}, 3e-16 * low * low + 1e-14);
    tester.checkTails(unary("gelu erf", "f32"), {.low = low, .high = high}, 1e-6);
  }
  for (auto [low, high] : {std::pair(-20.0, 20.0), {-104.0, -60.0}}) {
    for (std::string op : {"sigmoid", "silu"})
      tester.checkTails(unary(op, "f32"), {.low = low, .high = high}, 1e-6);
  }
  for (auto [low, high] : {std::pair(-20.0, 20.0), {-700.0, -60.0}})
    for (std::string op : {"sigmoid", "silu"})
      tester.checkTails(unary(op, "f64"), {.low = low, .high = high}, 1e-14);
}

/// The powers of Adam's bias correction, 1 / (1 - beta^step), from the first step to far ones.
TEST(Math, PowersOfTheStep) {
  KernelTester tester;
  for (int64_t step : {1, 2, 1000, 100000})
    tester.check(R"(
      func.func private @k(%p: tensor<5xf64>, %g: tensor<5xf64>, %m: tensor<5xf64>, %v: tensor<5xf64>, %step: tensor<i64>)
          -> (tensor<5xf64>, tensor<5xf64>, tensor<5xf64>) attributes {exec.kernel} {
        %lr = nn.constant dense<0.1> : tensor<f64>
        %np, %nm, %nv = nn.adam_update %p, %g, %m, %v lr = %lr step = %step
          {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : tensor<5xf64>, tensor<f64>
        return %np, %nm, %nv : tensor<5xf64>, tensor<5xf64>, tensor<5xf64>
      })",
                 {.low = 0.1, .high = 1, .intLow = step, .intHigh = step});
}

TEST(Math, EdgesOfArithmetic) {
  KernelTester tester;
  auto kernel = [](const std::string &op, const std::string &type, const std::string &values) {
    return "func.func private @k() -> tensor<6x" + type + "> attributes {exec.kernel} {\n" +
           "  %0 = nn.constant dense<[" + values + "]> : tensor<6x" + type + ">\n  %1 = nn." + op +
           " %0 : tensor<6x" + type + ">\n  return %1 : tensor<6x" + type + ">\n}\n";
  };
  for (std::string op : {"exp", "log", "tanh", "sqrt", "sin", "cos", "erf"}) {
    // 0, -1, infinity of both signs, NaN, 710: past the range of exp.
    tester.check(kernel(op, "f64", "0.0, -1.0, 0x7FF0000000000000, 0xFFF0000000000000, "
                                   "0x7FF8000000000000, 710.0"));
    tester.check(kernel(op, "f32", "0.0, -1.0, 0x7F800000, 0xFF800000, 0x7FC00000, 80.0"));
  }
}

} // namespace
