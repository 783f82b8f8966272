// Reductions, softmax, losses, updates, and the loops that fused kernels share.
#include "KernelTester.h"

#include "gtest/gtest.h"

using shoal::test::Inputs;
using shoal::test::KernelTester;

namespace {

std::string reduceOf(const std::string &kind, const std::string &from, const std::string &dims,
                     const std::string &to, bool keep = false) {
  return "func.func private @k(%a: tensor<" + from + ">) -> tensor<" + to +
         "> attributes {exec.kernel} {\n  %0 = nn.reduce " + kind + " %a dims = [" + dims + "]" +
         (keep ? " {keep_dims}" : "") + " : tensor<" + from + "> -> tensor<" + to +
         ">\n  return %0 : tensor<" + to + ">\n}\n";
}

TEST(Reduce, EveryKindAndPlace) {
  KernelTester tester;
  for (std::string kind : {"sum", "max"})
    for (std::string type : {"f32", "f64", "bf16", "i64"}) {
      tester.check(reduceOf(kind, "5x6x7x" + type, "0", "6x7x" + type));
      tester.check(reduceOf(kind, "5x6x7x" + type, "1", "5x7x" + type));
      tester.check(reduceOf(kind, "5x6x7x" + type, "2", "5x6x" + type));
      tester.check(reduceOf(kind, "5x6x7x" + type, "0, 2", "6x" + type));
      tester.check(reduceOf(kind, "5x6x7x" + type, "0, 1, 2", type));
      tester.check(reduceOf(kind, "5x6x7x" + type, "1", "5x1x7x" + type, true));
      tester.check(reduceOf(kind, "1x6x" + type, "0", "6x" + type));
    }
}

TEST(Reduce, BlocksOfFullSize) {
  KernelTester tester;
  tester.withFullBlocks();
  tester.check(reduceOf("sum", "1000xf32", "0", "f32"));
  tester.check(reduceOf("max", "3x300xf32", "1", "3xf32"));
  tester.check(reduceOf("sum", "300x5xf64", "0", "5xf64"));
  tester.check(reduceOf("max", "2x100xf32", "0, 1", "f32")); // fewer elements than threads
}

TEST(Reduce, LongSumsStayExact) {
  KernelTester tester;
  tester.check(reduceOf("sum", "100003xf32", "0", "f32"), {.low = 0, .high = 1}, 2e-6);
  tester.check(reduceOf("sum", "3x20000xf32", "1", "3xf32"), {.low = 0, .high = 1}, 2e-6);
  tester.check(reduceOf("sum", "50x9000xf32", "0, 1", "f32"), {.low = 0, .high = 1}, 2e-6);
  tester.check(reduceOf("max", "100003xf32", "0", "f32"));
}

TEST(Softmax, EveryDimension) {
  KernelTester tester;
  for (std::string op : {"softmax", "log_softmax"})
    for (std::string type : {"f32", "f64", "bf16"})
      for (std::string dim : {"0", "1", "2"})
        tester.check("func.func private @k(%a: tensor<4x5x33x" + type + ">) -> tensor<4x5x33x" +
                         type + "> attributes {exec.kernel} {\n  %0 = nn." + op +
                         " %a dim = " + dim + " : tensor<4x5x33x" + type +
                         ">\n  return %0 : tensor<4x5x33x" + type + ">\n}\n",
                     {.low = -20, .high = 20});
}

TEST(RowNorm, EveryTypeAndShape) {
  KernelTester tester;
  for (std::string shape : {"3x5x33x", "7x768x", "9x1x", "12x"})
    for (std::string type : {"f32", "f64", "bf16"}) {
      size_t last = shape.rfind('x', shape.size() - 2);
      std::string rows = last == std::string::npos ? "" : shape.substr(0, last + 1);
      std::string x = "tensor<" + shape + type + ">",
                  p = "tensor<" + (last == std::string::npos ? shape : shape.substr(last + 1)) + type + ">",
                  s = "tensor<" + rows + (type == "f64" ? "f64" : "f32") + ">";
      tester.check("func.func private @layer(%x: " + x + ", %g: " + p + ", %b: " + p + ") -> (" + x + ", " + s + ", " +
                   s + ") attributes {exec.kernel} {\n  %y, %m, %r = nn.layer_norm %x, %g, %b eps = 1.0e-5 : " + x +
                   ", " + p + "\n  return %y, %m, %r : " + x + ", " + s + ", " + s + "\n}\n" +
                   "func.func private @rms(%x: " + x + ", %g: " + p + ") -> (" + x + ", " + s +
                   ") attributes {exec.kernel} {\n  %y, %r = nn.rms_norm %x, %g eps = 1.0e-5 : " + x + ", " + p +
                   "\n  return %y, %r : " + x + ", " + s + "\n}\n");
    }
}

// Far from zero, where the mean of squares less the square of the mean has no digits left.
TEST(RowNorm, KeepsItsDigits) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<6x300xf32>) -> tensor<6x300xf32> attributes {exec.kernel} {
      %g = nn.constant dense<1.0> : tensor<300xf32>
      %b = nn.constant dense<0.0> : tensor<300xf32>
      %y, %m, %r = nn.layer_norm %x, %g, %b eps = 1.0e-5 : tensor<6x300xf32>, tensor<300xf32>
      return %y : tensor<6x300xf32>
    })",
               {.low = 999, .high = 1001}, 2e-3);
}

TEST(Rope, EveryTypeAndShape) {
  KernelTester tester;
  for (std::string type : {"f32", "f64", "bf16"})
    for (std::string inverse : {"", "{inverse} "}) {
      std::string x = "tensor<2x5x3x10x" + type + ">", one = "tensor<3x1x2x" + type + ">";
      tester.check("func.func private @k(%x: " + x + ", %p: tensor<5xi64>) -> " + x +
                       " attributes {exec.kernel} {\n  %0 = nn.rope %x, %p base = 10000.0 " + inverse + ": " + x +
                       ", tensor<5xi64>\n  return %0 : " + x + "\n}\n" +
                       "func.func private @one(%x: " + one + ", %p: tensor<3x1xi32>) -> " + one +
                       " attributes {exec.kernel} {\n  %0 = nn.rope %x, %p base = 10000.0 " + inverse + ": " + one +
                       ", tensor<3x1xi32>\n  return %0 : " + one + "\n}\n",
                   {.intLow = 0, .intHigh = 2000});
    }
}

// Angles keep their digits in f32 at positions where they have five before the point: the reference
// computes in double.
TEST(Rope, FarPositions) {
  KernelTester tester;
  for (int64_t position : {99'000, 1'000'000})
    tester.check(R"(
      func.func private @k(%p: tensor<40xi64>) -> (tensor<40x64xf32>, tensor<40x64xf32>) attributes {exec.kernel} {
        %c, %s = nn.rope_table %p base = 10000.0 : tensor<40xi64> -> tensor<40x64xf32>
        return %c, %s : tensor<40x64xf32>, tensor<40x64xf32>
      })",
                 {.intLow = position, .intHigh = position + 1000}, 1e-7);
}

TEST(Loss, MeanSquaredError) {
  KernelTester tester;
  for (std::string type : {"f32", "f64", "bf16"})
    tester.check("func.func private @k(%a: tensor<6x5x" + type + ">, %b: tensor<6x5x" + type + ">) -> tensor<" + type +
                 "> attributes {exec.kernel} {\n  %0 = nn.mse_loss sum %a, %b : (tensor<6x5x" + type +
                 ">, tensor<6x5x" + type + ">) -> tensor<" + type + ">\n  return %0 : tensor<" + type + ">\n}\n");
}

std::string crossEntropy(const std::string &type, const std::string &targets) {
  std::string logits = "tensor<9x6x" + type + ">", labels = "tensor<" + targets + ">",
              scalar = "tensor<" + type + ">",
              rows = "tensor<9x" + (type == "bf16" ? "f32" : type) + ">";
  return "func.func private @loss(%a: " + logits + ", %b: " + labels + ") -> (" + scalar + ", " + rows +
         ") attributes {exec.kernel} {\n  %0, %lse0 = nn.cross_entropy sum " +
         "%a, %b ignore_index = 1 : (" + logits + ", " + labels + ") -> " + scalar +
         "\n  return %0, %lse0 : " + scalar + ", " + rows + "\n}\n" + "func.func private @grad(%a: " + logits +
         ", %b: " + labels + ", %l: " + rows + ", %s: " + scalar + ") -> " + logits +
         " attributes {exec.kernel} {\n  %0 = nn.cross_entropy_grad %a, %b, %l, %s ignore_index = 1 : "
         "(" +
         logits + ", " + labels + ", " + scalar + ") -> " + logits + "\n  return %0 : " + logits +
         "\n}\n";
}

TEST(Loss, CrossEntropy) {
  KernelTester tester;
  for (std::string type : {"f32", "f64", "bf16"}) {
    tester.check(crossEntropy(type, "9xi64"), {.low = -8, .high = 8, .intLow = 0, .intHigh = 5});
    tester.check(crossEntropy(type, "9xi32"), {.intLow = 0, .intHigh = 5});
    tester.check(crossEntropy(type, "9x6x" + type), {.low = 0, .high = 1});
  }
}

TEST(Loss, CrossEntropyOfIgnoredAndForeignTargets) {
  KernelTester tester;
  // All ignored: zero. A target that is no class: NaN.
  tester.check(crossEntropy("f32", "9xi64"), {.intLow = 1, .intHigh = 1});
  tester.check(crossEntropy("f32", "9xi64"), {.intLow = 6, .intHigh = 6});
  tester.check(crossEntropy("f32", "9xi64"), {.intLow = -1, .intHigh = -1});
}

// Numbers of rows, of rows of another device, and of none: rows, zeros, NaN.
TEST(Embedding, WholeTableAndShard) {
  KernelTester tester;
  for (std::string type : {"f32", "f64", "bf16"})
    for (std::string ids : {"i64", "i32"}) {
      std::string table = "tensor<4x6x" + type + ">", numbers = "tensor<5x3x" + ids + ">",
                  result = "tensor<5x3x6x" + type + ">",
                  types = " : (" + table + ", " + numbers + ") -> " + result;
      tester.check("func.func private @whole(%t: " + table + ", %i: " + numbers + ") -> " + result +
                       " attributes {exec.kernel} {\n  %0 = nn.embedding %t, %i" + types +
                       "\n  return %0 : " + result + "\n}\n" +
                       "func.func private @shard(%t: " + table + ", %i: " + numbers +
                       ", %o: tensor<i64>) -> " + result +
                       " attributes {exec.kernel} {\n"
                       "  %0 = nn.embedding %t, %i offset = %o vocab = 7" + types +
                       "\n  return %0 : " + result + "\n}\n",
                   {.intLow = -1, .intHigh = 8});
    }
}

std::string updates(const std::string &shape, const std::string &type) {
  std::string p = "tensor<" + shape + type + ">", s = "tensor<" + type + ">";
  return "func.func private @sgd(%p: " + p + ", %g: " + p + ", %lr: " + s + ") -> " + p +
         " attributes {exec.kernel, exec.inplace = array<i64: 0>} {\n"
         "  %0 = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.01} : " +
         p + ", " + s + "\n  return %0 : " + p + "\n}\n" + "func.func private @momentum(%p: " + p +
         ", %g: " + p + ", %v: " + p + ", %lr: " + s + ") -> (" + p + ", " + p +
         ") attributes {exec.kernel, exec.inplace = array<i64: 0, 2>} {\n"
         "  %0, %1 = nn.momentum_update %p, %g, %v lr = %lr {momentum = 0.9, weight_decay = 0.01} "
         ": " +
         p + ", " + s + "\n  return %0, %1 : " + p + ", " + p + "\n}\n" +
         "func.func private @nesterov(%p: " + p + ", %g: " + p + ", %v: " + p + ", %lr: " + s +
         ") -> (" + p + ", " + p + ") attributes {exec.kernel, exec.inplace = array<i64: 0, 2>} {\n"
         "  %0, %1 = nn.momentum_update %p, %g, %v lr = %lr {momentum = 0.9, nesterov, weight_decay = "
         "0.01} : " +
         p + ", " + s + "\n  return %0, %1 : " + p + ", " + p + "\n}\n" +
         "func.func private @adam(%p: " + p + ", %g: " + p + ", %m: " + p + ", %v: " + p +
         ", %lr: " + s + ", %t: tensor<i64>) -> (" + p + ", " + p + ", " + p +
         ") attributes {exec.kernel, exec.inplace = array<i64: 0, 2, 3>} {\n"
         "  %0, %1, %2 = nn.adam_update %p, %g, %m, %v lr = %lr step = %t {beta1 = 0.9, beta2 = "
         "0.999, eps = 1.0e-8, "
         "weight_decay = 0.01} : " +
         p + ", " + s + "\n  return %0, %1, %2 : " + p + ", " + p + ", " + p + "\n}\n" +
         "func.func private @adamw(%p: " + p + ", %g: " + p + ", %m: " + p + ", %v: " + p +
         ", %lr: " + s + ", %t: tensor<i64>) -> (" + p + ", " + p + ", " + p +
         ") attributes {exec.kernel, exec.inplace = array<i64: -1, 2, -1>} {\n"
         "  %0, %1, %2 = nn.adam_update %p, %g, %m, %v lr = %lr step = %t {beta1 = 0.9, beta2 = "
         "0.999, eps = 1.0e-8, "
         "weight_decay = 0.01, decoupled} : " +
         p + ", " + s + "\n  return %0, %1, %2 : " + p + ", " + p + ", " + p + "\n}\n";
}

TEST(Update, InPlace) {
  KernelTester tester;
  Inputs positive{.low = 0.01, .high = 1, .intLow = 1, .intHigh = 20};
  for (std::string type : {"f32", "f64", "bf16"}) {
    tester.check(updates("7x13x", type), positive);
    tester.check(updates("1001x", type), positive);
    tester.check(updates("1x", type), positive);
  }
}

// Fusion.

TEST(Fusion, BackwardOfBiasAndRelu) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%h: tensor<31x17xf32>, %g: tensor<31x17xf32>) -> (tensor<31x17xf32>, tensor<17xf32>) attributes {exec.kernel} {
      %z = nn.constant dense<0.0> : tensor<f32>
      %c = nn.compare gt %h, %z : (tensor<31x17xf32>, tensor<f32>) -> tensor<31x17xi1>
      %0 = nn.select %c, %g, %z : (tensor<31x17xi1>, tensor<31x17xf32>, tensor<f32>) -> tensor<31x17xf32>
      %1 = nn.reduce sum %0 dims = [0] : tensor<31x17xf32> -> tensor<17xf32>
      return %0, %1 : tensor<31x17xf32>, tensor<17xf32>
    })");
}

TEST(Fusion, LossOfBiasedLogits) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<12x10xf32>, %b: tensor<10xf32>, %t: tensor<12xi64>, %s: tensor<f32>)
        -> (tensor<f32>, tensor<12x10xf32>, tensor<10xf32>) attributes {exec.kernel} {
      %0 = nn.add %x, %b : (tensor<12x10xf32>, tensor<10xf32>) -> tensor<12x10xf32>
      %1, %lse1 = nn.cross_entropy sum %0, %t : (tensor<12x10xf32>, tensor<12xi64>) -> tensor<f32>
      %2 = nn.cross_entropy_grad %0, %t, %lse1, %s : (tensor<12x10xf32>, tensor<12xi64>, tensor<f32>) -> tensor<12x10xf32>
      %3 = nn.reduce sum %2 dims = [0] : tensor<12x10xf32> -> tensor<10xf32>
      return %1, %2, %3 : tensor<f32>, tensor<12x10xf32>, tensor<10xf32>
    })",
               {.intLow = 0, .intHigh = 9});
}

// The gradient of a norm as differentiation writes it: sums along rows, then across, over rows that a residual brings.
TEST(Fusion, LayerNormBackward) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<3x5x70xf32>, %m: tensor<3x5x1xf32>, %r: tensor<3x5x1xf32>, %ct: tensor<3x5x70xf32>, %g: tensor<70xf32>)
        -> (tensor<3x5x70xf32>, tensor<70xf32>, tensor<70xf32>) attributes {exec.kernel} {
      %n = nn.constant dense<0.0142857142857> : tensor<f32>
      %c = nn.sub %x, %m : (tensor<3x5x70xf32>, tensor<3x5x1xf32>) -> tensor<3x5x70xf32>
      %h = nn.mul %c, %r : (tensor<3x5x70xf32>, tensor<3x5x1xf32>) -> tensor<3x5x70xf32>
      %gs = nn.mul %ct, %g : (tensor<3x5x70xf32>, tensor<70xf32>) -> tensor<3x5x70xf32>
      %p = nn.mul %gs, %h : (tensor<3x5x70xf32>, tensor<3x5x70xf32>) -> tensor<3x5x70xf32>
      %s1 = nn.reduce sum %p dims = [2] {keep_dims} : tensor<3x5x70xf32> -> tensor<3x5x1xf32>
      %m1 = nn.mul %s1, %n : (tensor<3x5x1xf32>, tensor<f32>) -> tensor<3x5x1xf32>
      %a = nn.mul %h, %m1 : (tensor<3x5x70xf32>, tensor<3x5x1xf32>) -> tensor<3x5x70xf32>
      %s2 = nn.reduce sum %gs dims = [2] {keep_dims} : tensor<3x5x70xf32> -> tensor<3x5x1xf32>
      %m2 = nn.mul %s2, %n : (tensor<3x5x1xf32>, tensor<f32>) -> tensor<3x5x1xf32>
      %d = nn.sub %gs, %m2 : (tensor<3x5x70xf32>, tensor<3x5x1xf32>) -> tensor<3x5x70xf32>
      %e = nn.sub %d, %a : (tensor<3x5x70xf32>, tensor<3x5x70xf32>) -> tensor<3x5x70xf32>
      %dx = nn.mul %e, %r : (tensor<3x5x70xf32>, tensor<3x5x1xf32>) -> tensor<3x5x70xf32>
      %q = nn.mul %ct, %h : (tensor<3x5x70xf32>, tensor<3x5x70xf32>) -> tensor<3x5x70xf32>
      %dg = nn.reduce sum %q dims = [0, 1] : tensor<3x5x70xf32> -> tensor<70xf32>
      %db = nn.reduce sum %ct dims = [0, 1] : tensor<3x5x70xf32> -> tensor<70xf32>
      return %dx, %dg, %db : tensor<3x5x70xf32>, tensor<70xf32>, tensor<70xf32>
    })");
}

TEST(Fusion, LayerNormAndItsStatistics) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<9x70xf32>, %g: tensor<70xf32>) -> (tensor<9x70xf32>, tensor<9x1xf32>) attributes {exec.kernel} {
      %c = nn.constant dense<70.0> : tensor<f32>
      %s = nn.reduce sum %x dims = [1] {keep_dims} : tensor<9x70xf32> -> tensor<9x1xf32>
      %m = nn.div %s, %c : (tensor<9x1xf32>, tensor<f32>) -> tensor<9x1xf32>
      %d = nn.sub %x, %m : (tensor<9x70xf32>, tensor<9x1xf32>) -> tensor<9x70xf32>
      %q = nn.mul %d, %d : (tensor<9x70xf32>, tensor<9x70xf32>) -> tensor<9x70xf32>
      %t = nn.reduce sum %q dims = [1] {keep_dims} : tensor<9x70xf32> -> tensor<9x1xf32>
      %v = nn.div %t, %c : (tensor<9x1xf32>, tensor<f32>) -> tensor<9x1xf32>
      %r = nn.rsqrt %v : tensor<9x1xf32>
      %n = nn.mul %d, %r : (tensor<9x70xf32>, tensor<9x1xf32>) -> tensor<9x70xf32>
      %o = nn.mul %n, %g : (tensor<9x70xf32>, tensor<70xf32>) -> tensor<9x70xf32>
      return %o, %r : tensor<9x70xf32>, tensor<9x1xf32>
    })");
}

// Rows and columns of equal size must not be taken for each other.
TEST(Fusion, SquareShapes) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<8x8xf64>, %b: tensor<8xf64>) -> (tensor<8x8xf64>, tensor<8xf64>, tensor<8xf64>, tensor<8x8xf64>) attributes {exec.kernel} {
      %e = nn.exp %b : tensor<8xf64>
      %0 = nn.add %x, %e : (tensor<8x8xf64>, tensor<8xf64>) -> tensor<8x8xf64>
      %t = nn.transpose %0 [1, 0] : tensor<8x8xf64> -> tensor<8x8xf64>
      %1 = nn.sub %0, %t : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
      %2 = nn.reduce sum %0 dims = [0] : tensor<8x8xf64> -> tensor<8xf64>
      %3 = nn.reduce sum %0 dims = [1] : tensor<8x8xf64> -> tensor<8xf64>
      %4 = nn.mul %2, %3 : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
      %5 = nn.add %1, %4 : (tensor<8x8xf64>, tensor<8xf64>) -> tensor<8x8xf64>
      return %1, %2, %4, %5 : tensor<8x8xf64>, tensor<8xf64>, tensor<8xf64>, tensor<8x8xf64>
    })");
}

TEST(Fusion, OldValueReadByOthers) {
  KernelTester tester;
  // The operand that is overwritten has other readers: row-wise, transposed, and by its own update.
  tester.check(R"(
    func.func private @reader(%p: tensor<6x6xf32>, %g: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<f32>, tensor<6x6xf32>)
        attributes {exec.kernel, exec.inplace = array<i64: 0, -1, -1>} {
      %0 = nn.sub %p, %g : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
      %1 = nn.reduce sum %p dims = [0, 1] : tensor<6x6xf32> -> tensor<f32>
      %2 = nn.transpose %p [1, 0] : tensor<6x6xf32> -> tensor<6x6xf32>
      return %0, %1, %2 : tensor<6x6xf32>, tensor<f32>, tensor<6x6xf32>
    }
    func.func private @own(%p: tensor<6x6xf32>) -> tensor<6x6xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>} {
      %0 = nn.transpose %p [1, 0] : tensor<6x6xf32> -> tensor<6x6xf32>
      %1 = nn.add %p, %0 : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
      return %1 : tensor<6x6xf32>
    }
    func.func private @normalize(%p: tensor<5x40xf32>) -> tensor<5x40xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>} {
      %0 = nn.softmax %p dim = 1 : tensor<5x40xf32>
      return %0 : tensor<5x40xf32>
    }
    func.func private @after(%p: tensor<7xf32>, %g: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>)
        attributes {exec.kernel, exec.inplace = array<i64: 0, 1>} {
      %0 = nn.add %p, %g : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
      %1 = nn.mul %0, %p : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
      return %0, %1 : tensor<7xf32>, tensor<7xf32>
    }
    func.func private @reversed(%p: tensor<7xf32>, %n: tensor<7xf32>) -> (tensor<7xf32>, tensor<f32>)
        attributes {exec.kernel, exec.inplace = array<i64: 0, -1>} {
      %s = nn.reduce sum %n dims = [0] : tensor<7xf32> -> tensor<f32>
      %0 = nn.mul %p, %s : (tensor<7xf32>, tensor<f32>) -> tensor<7xf32>
      %1 = nn.mul %0, %p : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
      %2 = nn.reduce sum %1 dims = [0] : tensor<7xf32> -> tensor<f32>
      return %0, %2 : tensor<7xf32>, tensor<f32>
    }
    func.func private @pass(%p: tensor<7xf32>, %n: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>)
        attributes {exec.kernel, exec.inplace = array<i64: 0, -1, 1>} {
      %0 = nn.mul %p, %n : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
      return %0, %p, %n : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
    })");
}

// Column statistics in the middle: values between two passes over the rows, more than the stack
// holds.
TEST(Fusion, WorkspaceHoldsWhatTheStackDoesNot) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<210x200xf32>) -> tensor<210x200xf32> attributes {exec.kernel} {
      %e = nn.exp %x : tensor<210x200xf32>
      %s = nn.reduce sum %e dims = [0] : tensor<210x200xf32> -> tensor<200xf32>
      %0 = nn.div %e, %s : (tensor<210x200xf32>, tensor<200xf32>) -> tensor<210x200xf32>
      %1 = nn.tanh %0 : tensor<210x200xf32>
      %m = nn.reduce max %1 dims = [0] : tensor<210x200xf32> -> tensor<200xf32>
      %2 = nn.sub %1, %m : (tensor<210x200xf32>, tensor<200xf32>) -> tensor<210x200xf32>
      return %2 : tensor<210x200xf32>
    })");
}

TEST(Fusion, BatchedRows) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<3x4x21xf32>, %y: tensor<4x21xf32>) -> (tensor<3x4x21xf32>, tensor<3x4xf32>, tensor<4x21xf32>) attributes {exec.kernel} {
      %0 = nn.add %x, %y : (tensor<3x4x21xf32>, tensor<4x21xf32>) -> tensor<3x4x21xf32>
      %1 = nn.softmax %0 dim = 2 : tensor<3x4x21xf32>
      %2 = nn.mul %1, %0 : (tensor<3x4x21xf32>, tensor<3x4x21xf32>) -> tensor<3x4x21xf32>
      %3 = nn.reduce sum %2 dims = [2] : tensor<3x4x21xf32> -> tensor<3x4xf32>
      %4 = nn.reduce max %2 dims = [0] : tensor<3x4x21xf32> -> tensor<4x21xf32>
      return %1, %3, %4 : tensor<3x4x21xf32>, tensor<3x4xf32>, tensor<4x21xf32>
    })");
}

TEST(Fusion, GlobalNormClipAndUpdate) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%p: tensor<300xf32>, %g: tensor<300xf32>, %lr: tensor<f32>) -> (tensor<300xf32>, tensor<f32>)
        attributes {exec.kernel, exec.inplace = array<i64: 0, -1>} {
      %q = nn.mul %g, %g : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
      %s = nn.reduce sum %q dims = [0] : tensor<300xf32> -> tensor<f32>
      %n = nn.sqrt %s : tensor<f32>
      %one = nn.constant dense<1.0> : tensor<f32>
      %c = nn.maximum %n, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %h = nn.div %g, %c : (tensor<300xf32>, tensor<f32>) -> tensor<300xf32>
      %0 = nn.sgd_update %p, %h lr = %lr {weight_decay = 0.0} : tensor<300xf32>, tensor<f32>
      return %0, %n : tensor<300xf32>, tensor<f32>
    })");
}

} // namespace
