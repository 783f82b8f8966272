// Elementwise and shape ops as kernels: types, broadcasting, odd sizes, scalars, in-place results.
#include "KernelTester.h"

#include "gtest/gtest.h"

using shoal::test::Inputs;
using shoal::test::KernelTester;

namespace {

/// `text` with every TYPE replaced.
std::string with(std::string text, const std::string &type) {
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
    text.replace(at, 4, type);
  return text;
}

std::string binary(const std::string &op, const std::string &a, const std::string &b,
                   const std::string &r) {
  return "func.func private @k(%a: tensor<" + a + ">, %b: tensor<" + b + ">) -> tensor<" + r +
         "> attributes {exec.kernel} {\n  %0 = nn." + op + " %a, %b : (tensor<" + a + ">, tensor<" +
         b + ">) -> tensor<" + r + ">\n  return %0 : tensor<" + r + ">\n}\n";
}

std::string unary(const std::string &op, const std::string &type) {
  return "func.func private @k(%a: tensor<" + type + ">) -> tensor<" + type +
         "> attributes {exec.kernel} {\n  %0 = nn." + op + " %a : tensor<" + type +
         ">\n  return %0 : tensor<" + type + ">\n}\n";
}

TEST(Elementwise, BinaryOpsOfEveryType) {
  KernelTester tester;
  for (std::string op : {"add", "sub", "mul", "maximum", "minimum"})
    for (std::string type : {"f32", "f64", "bf16", "i32", "i64"})
      tester.check(binary(op, "5x7x" + type, "5x7x" + type, "5x7x" + type));
  for (std::string type : {"f32", "f64", "bf16"})
    tester.check(binary("div", "5x7x" + type, "5x7x" + type, "5x7x" + type), {.low = 0.5});
  for (std::string type : {"i32", "i64"})
    tester.check(binary("div", "5x7x" + type, "5x7x" + type, "5x7x" + type),
                 {.intLow = 1, .intHigh = 9});
}

TEST(Elementwise, Broadcasting) {
  KernelTester tester;
  tester.check(binary("add", "3x1x5xf32", "4x5xf32", "3x4x5xf32"));
  tester.check(binary("mul", "f32", "2x3xf32", "2x3xf32"));
  tester.check(binary("sub", "1xf32", "1x1xf32", "1x1xf32"));
  tester.check(binary("sub", "f64", "f64", "f64"));
  tester.check(binary("add", "4x1xi64", "1x3xi64", "4x3xi64"));
  tester.check(binary("add", "1x9xf32", "1x9xf32", "1x9xf32"));
}

TEST(Elementwise, UnaryOps) {
  KernelTester tester;
  for (std::string type : {"37xf32", "3x11xf64", "2x3x4xbf16", "f32", "1x129xf32"}) {
    for (std::string op : {"neg", "exp", "tanh", "relu", "sigmoid", "silu", "erf", "erfc", "sin", "cos", "gelu tanh",
                           "gelu erf"})
      tester.check(unary(op, type), {.low = -6, .high = 6});
    for (std::string op : {"log", "sqrt", "rsqrt"})
      tester.check(unary(op, type), {.low = 0.1, .high = 30});
  }
}

// Where exponentials overflow, activations are 0, 1 or x, and their gradients finite.
TEST(Elementwise, ActivationsFarFromZero) {
  KernelTester tester;
  for (double scale : {30.0, 300.0, 1e4})
    for (std::string type : {"67xf32", "5x13xf64"}) {
      for (std::string op : {"tanh", "sigmoid", "silu", "erf", "erfc", "gelu tanh", "gelu erf"})
        tester.check(unary(op, type), {.low = -scale, .high = scale});
      tester.check(unary("sin", type), {.low = -scale, .high = scale});
      tester.check(unary("cos", type), {.low = -scale, .high = scale});
    }
}

// The same elements as the runtime's generator draws, for keys of 64 bits, late steps, shards of tensors with more than
// 2^32 elements, and whatever is small.
TEST(Elementwise, Dropout) {
  KernelTester tester;
  std::string text = R"(
    func.func private @whole(%a: tensor<SHAPExTYPE>, %s: tensor<i64>, %t: tensor<i64>) -> tensor<SHAPExTYPE> attributes {exec.kernel} {
      %0 = nn.dropout %a rate = 0.3 id = 4294967295 seed = %s step = %t : tensor<SHAPExTYPE>
      return %0 : tensor<SHAPExTYPE>
    }
    func.func private @large(%a: tensor<SHAPExTYPE>) -> tensor<SHAPExTYPE> attributes {exec.kernel} {
      %s = nn.constant dense<-81985529216486896> : tensor<i64>
      %t = nn.constant dense<4294967294> : tensor<i64>
      %o = nn.constant dense<1099511627000> : tensor<i64>
      %0 = nn.dropout %a rate = 0.99 id = 0 seed = %s step = %t offset = %o global = [1048576, 1048576] : tensor<SHAPExTYPE>
      return %0 : tensor<SHAPExTYPE>
    })";
  for (std::string shape : {"13x37", "1x1", "3x300"}) {
    std::string sized = text;
    for (size_t at; (at = sized.find("SHAPE")) != std::string::npos;)
      sized.replace(at, 5, shape);
    for (std::string type : {"f32", "f64", "bf16"})
      tester.check(with(sized, type), {.intLow = 0, .intHigh = 1000});
  }
  tester.check(
      "func.func private @k(%a: tensor<f32>, %s: tensor<i64>, %t: tensor<i64>) -> tensor<f32> attributes {exec.kernel} "
      "{\n"
      "  %0 = nn.dropout %a rate = 0.5 id = 0 seed = %s step = %t : tensor<f32>\n  return %0 : tensor<f32>\n}\n");
}

// At positions that are those of no order, of a shard whose other dimensions have an offset, fused with what makes and
// reads its operand; in one dimension too.
TEST(Elementwise, DropoutPositions) {
  KernelTester tester;
  std::string text = R"(
    func.func private @rows(%a: tensor<13x37xTYPE>, %p: tensor<13xi64>, %s: tensor<i64>, %t: tensor<i64>)
        -> tensor<13x37xTYPE> attributes {exec.kernel} {
      %0 = nn.neg %a : tensor<13x37xTYPE>
      %1 = nn.dropout %0 rate = 0.3 id = 7 seed = %s step = %t global = [1048576, 1048576] positions = %p dim = 0
        : tensor<13x37xTYPE>, tensor<13xi64>
      %2 = nn.add %1, %a : (tensor<13x37xTYPE>, tensor<13x37xTYPE>) -> tensor<13x37xTYPE>
      return %2 : tensor<13x37xTYPE>
    }
    func.func private @columns(%a: tensor<5x3x37xTYPE>, %p: tensor<37xi64>, %s: tensor<i64>, %t: tensor<i64>,
                               %o: tensor<i64>) -> tensor<5x3x37xTYPE> attributes {exec.kernel} {
      %0 = nn.dropout %a rate = 0.3 id = 7 seed = %s step = %t offset = %o global = [5, 9, 5000] positions = %p dim = 2
        : tensor<5x3x37xTYPE>, tensor<37xi64>
      return %0 : tensor<5x3x37xTYPE>
    }
    func.func private @one(%a: tensor<41xTYPE>, %p: tensor<41xi64>, %s: tensor<i64>) -> tensor<41xTYPE>
        attributes {exec.kernel} {
      %0 = nn.dropout %a rate = 0.5 id = 7 seed = %s step = %s positions = %p dim = 0 : tensor<41xTYPE>, tensor<41xi64>
      return %0 : tensor<41xTYPE>
    })";
  for (std::string type : {"f32", "f64", "bf16"})
    tester.check(with(text, type), {.intLow = 0, .intHigh = 4000});
  tester.check(with(text, "f32"), {.intLow = -1, .intHigh = 0}); // rows that do not exist
}

// Scores that differ by little and by all that there is, so large that exponentials overflow; empty parts on either
// side and on both leave the other's bits, as quotients by them show for zeros.
TEST(Elementwise, MergeAttention) {
  KernelTester tester;
  std::string text = R"(
    func.func private @rows(%o: tensor<3x5x7xTYPE>, %l: tensor<3x5xTYPE>, %p: tensor<3x5x7xTYPE>, %m: tensor<3x5xTYPE>)
        -> (tensor<3x5x7xTYPE>, tensor<3x5xTYPE>) attributes {exec.kernel} {
      %0:2 = nn.merge_attention %o, %l, %p, %m : tensor<3x5x7xTYPE>
      return %0#0, %0#1 : tensor<3x5x7xTYPE>, tensor<3x5xTYPE>
    }
    func.func private @one(%o: tensor<37xTYPE>, %l: tensor<TYPE>, %p: tensor<37xTYPE>, %m: tensor<TYPE>)
        -> (tensor<37xTYPE>, tensor<TYPE>) attributes {exec.kernel} {
      %0:2 = nn.merge_attention %o, %l, %p, %m : tensor<37xTYPE>
      return %0#0, %0#1 : tensor<37xTYPE>, tensor<TYPE>
    }
    func.func private @wide(%o: tensor<2x300xTYPE>, %l: tensor<2xTYPE>, %p: tensor<2x300xTYPE>, %m: tensor<2xTYPE>)
        -> (tensor<2x300xTYPE>, tensor<2xTYPE>) attributes {exec.kernel} {
      %0:2 = nn.merge_attention %o, %l, %p, %m : tensor<2x300xTYPE>
      return %0#0, %0#1 : tensor<2x300xTYPE>, tensor<2xTYPE>
    })";
  for (std::string type : {"f32", "f64"}) {
    tester.check(with(text, type));
    tester.check(with(text, type), {.low = -3000, .high = 3000});
    tester.check(with(text, type), {.low = 999, .high = 1001});
    tester.check(with(text, type), {.low = -1e30, .high = 1e30});
  }
  std::string empty = R"(
    func.func private @empty(%o: tensor<3x5xTYPE>, %p: tensor<3x5xTYPE>, %a: tensor<TYPE>)
        -> (tensor<3x5xi1>, tensor<3x5xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3x5xTYPE>)
        attributes {exec.kernel} {
      %n = nn.constant dense<NOTHING> : tensor<TYPE>
      %k = nn.constant dense<[-1.0, 1000.0, NOTHING]> : tensor<3xTYPE>
      %l = nn.mul %k, %a : (tensor<3xTYPE>, tensor<TYPE>) -> tensor<3xTYPE>
      %none = nn.broadcast %n : tensor<TYPE> -> tensor<3xTYPE>
      %0:2 = nn.merge_attention %o, %l, %p, %none : tensor<3x5xTYPE>
      %1:2 = nn.merge_attention %p, %none, %o, %l : tensor<3x5xTYPE>
      %2 = nn.compare eq %0#0, %o : (tensor<3x5xTYPE>, tensor<3x5xTYPE>) -> tensor<3x5xi1>
      %3 = nn.compare eq %1#0, %o : (tensor<3x5xTYPE>, tensor<3x5xTYPE>) -> tensor<3x5xi1>
      %4 = nn.compare eq %0#1, %l : (tensor<3xTYPE>, tensor<3xTYPE>) -> tensor<3xi1>
      %5 = nn.compare eq %1#1, %l : (tensor<3xTYPE>, tensor<3xTYPE>) -> tensor<3xi1>
      %z = nn.constant dense<-0.0> : tensor<3x5xTYPE>
      %6:2 = nn.merge_attention %z, %l, %p, %none : tensor<3x5xTYPE>
      %7 = nn.div %a, %6#0 : (tensor<TYPE>, tensor<3x5xTYPE>) -> tensor<3x5xTYPE>
      return %2, %3, %4, %5, %7 : tensor<3x5xi1>, tensor<3x5xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3x5xTYPE>
    })";
  auto nothing = [&](const std::string &type, const std::string &bits) {
    std::string text = with(empty, type);
    for (size_t at; (at = text.find("NOTHING")) != std::string::npos;)
      text.replace(at, 7, bits);
    return text;
  };
  tester.check(nothing("f32", "0xFF800000"), {.low = 0.5, .high = 2});
  tester.check(nothing("f64", "0xFFF0000000000000"), {.low = 0.5, .high = 2});
}

// Against the reference, both ways and in every type: sizes that ranks divide or not, more ranks than rows, rows inside
// and innermost; shards that lie inside, across the end, and past it.
TEST(Elementwise, Zigzag) {
  KernelTester tester;
  auto replace = [](std::string text, const std::string &name, int64_t number) {
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), std::to_string(number));
    return text;
  };
  std::string rows = R"(
    func.func private @rows(%x: tensor<SIZEx3xTYPE>) -> (tensor<SIZEx3xTYPE>, tensor<SIZEx3xTYPE>)
        attributes {exec.kernel} {
      %0 = nn.zigzag %x dim = 0 ranks = RANKS : tensor<SIZEx3xTYPE>
      %1 = nn.zigzag %x dim = 0 ranks = RANKS inverse : tensor<SIZEx3xTYPE>
      return %0, %1 : tensor<SIZEx3xTYPE>, tensor<SIZEx3xTYPE>
    })";
  for (int64_t size : {1, 7, 12, 24})
    for (int64_t ranks : {1, 2, 3, 5, 30})
      tester.check(with(replace(replace(rows, "SIZE", size), "RANKS", ranks), "f32"));
  for (std::string type : {"i1", "i32", "i64", "bf16", "f64"})
    tester.check(with(replace(replace(rows, "SIZE", 11), "RANKS", 4), type));
  std::string shards = R"(
    func.func private @shards(%x: tensor<2x11xTYPE>, %o: tensor<i64>) -> (tensor<2x4xTYPE>, tensor<2x4xTYPE>)
        attributes {exec.kernel} {
      %0 = nn.zigzag %x dim = 1 ranks = 4 offset = %o : tensor<2x11xTYPE> -> tensor<2x4xTYPE>
      %1 = nn.zigzag %x dim = 1 ranks = 4 inverse offset = %o : tensor<2x11xTYPE> -> tensor<2x4xTYPE>
      return %0, %1 : tensor<2x4xTYPE>, tensor<2x4xTYPE>
    })";
  for (std::string type : {"i1", "f32", "bf16", "f64"})
    for (int64_t begin : {0, 3, 9, 20})
      tester.check(with(shards, type), {.intLow = begin, .intHigh = begin});
}

TEST(Elementwise, CompareAndSelect) {
  KernelTester tester;
  for (std::string predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
    for (std::string type : {"f32", "f64", "i64", "i32", "bf16"})
      tester.check(with("func.func private @k(%a: tensor<6x9xTYPE>, %b: tensor<9xTYPE>) -> "
                        "(tensor<6x9xTYPE>, tensor<6x9xi1>) "
                        "attributes {exec.kernel} {\n  %c = nn.compare " +
                            predicate +
                            " %a, %b : (tensor<6x9xTYPE>, tensor<9xTYPE>) -> tensor<6x9xi1>\n"
                            "  %0 = nn.select %c, %a, %b : (tensor<6x9xi1>, tensor<6x9xTYPE>, "
                            "tensor<9xTYPE>) -> tensor<6x9xTYPE>\n"
                            "  return %0, %c : tensor<6x9xTYPE>, tensor<6x9xi1>\n}\n",
                        type));
}

TEST(Elementwise, Casts) {
  KernelTester tester;
  for (std::string from : {"f32", "f64", "bf16", "i32", "i64", "i1"})
    for (std::string to : {"f32", "f64", "bf16", "i32", "i64"})
      if (from != to)
        tester.check("func.func private @k(%a: tensor<21x" + from + ">) -> tensor<21x" + to +
                         "> attributes {exec.kernel} {\n  %0 = nn.cast %a : tensor<21x" + from +
                         "> -> tensor<21x" + to + ">\n  return %0 : tensor<21x" + to + ">\n}\n",
                     {.low = -40, .high = 40, .intLow = -40, .intHigh = 40});
}

TEST(Elementwise, Mask) {
  KernelTester tester;
  tester.check(R"(
    func.func private @rows(%x: tensor<7x5xf32>, %n: tensor<i64>) -> tensor<7x5xf32> attributes {exec.kernel} {
      %0 = nn.mask %x dim = 0 limit = %n fill = -1.5 : tensor<7x5xf32>
      return %0 : tensor<7x5xf32>
    }
    func.func private @columns(%x: tensor<7x5xi64>, %n: tensor<i64>, %o: tensor<i64>) -> tensor<7x5xi64> attributes {exec.kernel} {
      %0 = nn.mask %x dim = 1 limit = %n offset = %o fill = -100.0 : tensor<7x5xi64>
      return %0 : tensor<7x5xi64>
    }
    func.func private @chain(%x: tensor<6x4xf64>, %n: tensor<i64>) -> tensor<f64> attributes {exec.kernel} {
      %0 = nn.mul %x, %x : (tensor<6x4xf64>, tensor<6x4xf64>) -> tensor<6x4xf64>
      %1 = nn.mask %0 dim = 0 limit = %n fill = 0.0 : tensor<6x4xf64>
      %2 = nn.reduce sum %1 dims = [0, 1] : tensor<6x4xf64> -> tensor<f64>
      return %2 : tensor<f64>
    })",
               {.intLow = 0, .intHigh = 6});
}

TEST(Elementwise, Constants) {
  KernelTester tester;
  tester.check(R"(
    func.func private @splat() -> tensor<3x5xf32> attributes {exec.kernel} {
      %0 = nn.constant dense<2.5> : tensor<3x5xf32>
      return %0 : tensor<3x5xf32>
    }
    func.func private @table(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xi64>) attributes {exec.kernel} {
      %0 = nn.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
      %1 = nn.mul %x, %0 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      %2 = nn.constant dense<[7, -1, 5]> : tensor<3xi64>
      return %1, %2 : tensor<2x3xf32>, tensor<3xi64>
    }
    func.func private @scalar(%x: tensor<4xf64>) -> tensor<4xf64> attributes {exec.kernel} {
      %0 = nn.constant dense<0.1> : tensor<f64>
      %1 = nn.sub %x, %0 : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
      return %1 : tensor<4xf64>
    })");
}

TEST(Elementwise, NotANumberPropagates) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<40xf32>) -> (tensor<40xf32>, tensor<f32>) attributes {exec.kernel} {
      %0 = nn.sqrt %x : tensor<40xf32>
      %1 = nn.relu %0 : tensor<40xf32>
      %2 = nn.reduce max %0 dims = [0] : tensor<40xf32> -> tensor<f32>
      return %1, %2 : tensor<40xf32>, tensor<f32>
    })");
}

TEST(Shape, MovesOfData) {
  KernelTester tester;
  for (std::string type : {"f32", "i64", "i1", "bf16"})
    tester.check(with(R"(
    func.func private @transpose(%x: tensor<3x5x2xTYPE>) -> tensor<2x3x5xTYPE> attributes {exec.kernel} {
      %0 = nn.transpose %x [2, 0, 1] : tensor<3x5x2xTYPE> -> tensor<2x3x5xTYPE>
      return %0 : tensor<2x3x5xTYPE>
    }
    func.func private @reshape(%x: tensor<3x8xTYPE>) -> tensor<4x6xTYPE> attributes {exec.kernel} {
      %0 = nn.reshape %x : tensor<3x8xTYPE> -> tensor<4x6xTYPE>
      return %0 : tensor<4x6xTYPE>
    }
    func.func private @broadcast(%x: tensor<3x1xTYPE>) -> tensor<2x3x4xTYPE> attributes {exec.kernel} {
      %0 = nn.broadcast %x : tensor<3x1xTYPE> -> tensor<2x3x4xTYPE>
      return %0 : tensor<2x3x4xTYPE>
    }
    func.func private @slice(%x: tensor<6x5xTYPE>) -> (tensor<3x5xTYPE>, tensor<6x2xTYPE>) attributes {exec.kernel} {
      %0 = nn.slice %x dim = 0 start = 2 : tensor<6x5xTYPE> -> tensor<3x5xTYPE>
      %1 = nn.slice %x dim = 1 start = 0 : tensor<6x5xTYPE> -> tensor<6x2xTYPE>
      return %0, %1 : tensor<3x5xTYPE>, tensor<6x2xTYPE>
    }
    func.func private @pad(%x: tensor<3x5xTYPE>) -> (tensor<8x5xTYPE>, tensor<3x6xTYPE>) attributes {exec.kernel} {
      %0 = nn.pad %x dim = 0 low = 2 : tensor<3x5xTYPE> -> tensor<8x5xTYPE>
      %1 = nn.pad %x dim = 1 low = 0 : tensor<3x5xTYPE> -> tensor<3x6xTYPE>
      return %0, %1 : tensor<8x5xTYPE>, tensor<3x6xTYPE>
    })",
                      type));
}

TEST(Shape, DynamicSliceClampsItsStart) {
  KernelTester tester;
  for (unsigned seed = 1; seed < 6; ++seed)
    tester.check(R"(
    func.func private @k(%x: tensor<8x4xf32>, %s: tensor<i64>) -> tensor<3x4xf32> attributes {exec.kernel} {
      %0 = nn.dynamic_slice %x dim = 0 start = %s : tensor<8x4xf32> -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    })",
                 {.seed = seed, .intLow = -4, .intHigh = 12});
}

TEST(Shape, DynamicUpdateSliceClampsItsStart) {
  KernelTester tester;
  for (unsigned seed = 1; seed < 6; ++seed)
    for (std::string type : {"f32", "i64", "bf16"})
      tester.check(with(R"(
    func.func private @k(%x: tensor<8x4xTYPE>, %u: tensor<3x4xTYPE>, %c: tensor<8x1xTYPE>, %s: tensor<i64>) -> (tensor<8x4xTYPE>, tensor<8x4xTYPE>) attributes {exec.kernel} {
      %0 = nn.dynamic_update_slice %x, %u dim = 0 start = %s : tensor<8x4xTYPE>, tensor<3x4xTYPE>
      %1 = nn.dynamic_update_slice %x, %c dim = 1 start = %s : tensor<8x4xTYPE>, tensor<8x1xTYPE>
      return %0, %1 : tensor<8x4xTYPE>, tensor<8x4xTYPE>
    })",
                        type),
                   {.seed = seed, .intLow = -4, .intHigh = 12});
}

TEST(Shape, ConcatAndIota) {
  KernelTester tester;
  for (std::string type : {"f32", "i64", "i1", "bf16"})
    tester.check(with(R"(
    func.func private @concat(%a: tensor<3x5xTYPE>, %b: tensor<1x5xTYPE>, %c: tensor<3x2xTYPE>)
        -> (tensor<7x5xTYPE>, tensor<3x7xTYPE>, tensor<3x5xTYPE>) attributes {exec.kernel} {
      %0 = nn.concat %a, %b, %a dim = 0 : (tensor<3x5xTYPE>, tensor<1x5xTYPE>, tensor<3x5xTYPE>) -> tensor<7x5xTYPE>
      %1 = nn.concat %a, %c dim = 1 : (tensor<3x5xTYPE>, tensor<3x2xTYPE>) -> tensor<3x7xTYPE>
      %2 = nn.concat %a dim = 1 : (tensor<3x5xTYPE>) -> tensor<3x5xTYPE>
      return %0, %1, %2 : tensor<7x5xTYPE>, tensor<3x7xTYPE>, tensor<3x5xTYPE>
    })",
                      type));
  tester.check(R"(
    func.func private @iota(%x: tensor<4x8xf32>) -> (tensor<4x8xi64>, tensor<3xi32>, tensor<4x8xf32>) attributes {exec.kernel} {
      %0 = nn.iota dim = 1 : tensor<4x8xi64>
      %1 = nn.iota dim = 0 : tensor<3xi32>
      %2 = nn.cast %0 : tensor<4x8xi64> -> tensor<4x8xf32>
      %3 = nn.mul %2, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      return %0, %1, %3 : tensor<4x8xi64>, tensor<3xi32>, tensor<4x8xf32>
    })");
}

TEST(Shape, BatchNorm) {
  KernelTester tester;
  for (std::string shape : {"9x5x", "3x4x7x", "1x3x"})
    for (std::string type : {"f32", "f64"}) {
      std::string feature = shape == "9x5x" ? "5x" : shape == "1x3x" ? "3x" : "4x";
      std::string x = "tensor<" + shape + type + ">", f = "tensor<" + feature + type + ">";
      tester.check("func.func private @k(%x: " + x + ", %g: " + f + ", %b: " + f + ", %m: " + f +
                   ", %v: " + f + ") -> (" + x + ", " + f + ", " + f +
                   ") attributes {exec.kernel, exec.inplace = array<i64: -1, 3, -1>} {\n"
                   "  %0:3 = nn.batch_norm %x, %g, %b, %m, %v momentum = 0.1 eps = 1.0e-5 : " +
                   x + ", " + f + "\n  return %0#0, %0#1, %0#2 : " + x + ", " + f + ", " + f + "\n}\n");
    }
}

TEST(Shape, ViewsBetweenOps) {
  KernelTester tester;
  tester.check(R"(
    func.func private @k(%x: tensor<4x6xf32>, %y: tensor<24xf32>) -> (tensor<24xf32>, tensor<2x12xf32>, tensor<f32>) attributes {exec.kernel} {
      %0 = nn.exp %x : tensor<4x6xf32>
      %1 = nn.reshape %0 : tensor<4x6xf32> -> tensor<24xf32>
      %2 = nn.mul %1, %y : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
      %3 = nn.reshape %2 : tensor<24xf32> -> tensor<2x12xf32>
      %4 = nn.reduce sum %3 dims = [0, 1] : tensor<2x12xf32> -> tensor<f32>
      return %1, %3, %4 : tensor<24xf32>, tensor<2x12xf32>, tensor<f32>
    }
    func.func private @scalars(%x: tensor<f32>) -> tensor<1x1xf32> attributes {exec.kernel} {
      %0 = nn.exp %x : tensor<f32>
      %1 = nn.reshape %0 : tensor<f32> -> tensor<1x1xf32>
      return %1 : tensor<1x1xf32>
    })");
}

} // namespace
