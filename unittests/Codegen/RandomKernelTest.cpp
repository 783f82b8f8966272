// Random kernels against the reference: fused chains of broadcasts, reductions, softmax,
// transposes, views and masks over square, thin and single-row spaces, with random results and
// random in-place operands.
#include "KernelTester.h"

#include "gtest/gtest.h"

#include <random>
#include <sstream>

using shoal::test::Inputs;
using shoal::test::KernelTester;

namespace {

using Shape = std::vector<int64_t>;

std::string typeOf(const Shape &shape, const std::string &element = "f64") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string kernel(const std::string &name) {
    values.clear();
    body.str("");
    next = 0;
    static const std::vector<Shape> spaces = {{7, 7},    {5, 9},    {1, 6}, {6, 1},   {3, 4, 5},
                                              {4, 4, 4}, {2, 1, 7}, {11},   {130, 70}};
    space = spaces[pick(spaces.size())];
    unsigned numArguments = 2 + pick(3);
    std::string arguments;
    for (unsigned k = 0; k < numArguments; ++k) {
      Shape shape = k == 0 ? space : related();
      values.push_back({"%a" + std::to_string(k), shape, true});
      arguments += (k ? ", " : "") + values.back().name + ": " + typeOf(shape);
    }
    arguments += ", %limit: tensor<i64>";
    unsigned numOps = 3 + pick(9);
    for (unsigned k = 0; k < numOps; ++k)
      addOp();
    return finish(name, arguments, numArguments);
  }

private:
  struct Entry {
    std::string name;
    Shape shape;
    bool isOperand = false; // or a view of one
  };

  unsigned pick(size_t count) {
    return std::uniform_int_distribution<unsigned>(0, unsigned(count) - 1)(random);
  }
  const Entry &any() { return values[pick(values.size())]; }

  /// A shape that broadcasts to the space.
  Shape related() {
    Shape shape = space;
    for (int64_t &size : shape)
      if (pick(3) == 0)
        size = 1;
    if (pick(2) == 0)
      shape.erase(shape.begin(), shape.begin() + pick(shape.size() + 1));
    return shape;
  }

  static bool broadcast(const Shape &a, const Shape &b, Shape &result) {
    result.assign(std::max(a.size(), b.size()), 1);
    for (size_t k = 0; k < result.size(); ++k) {
      int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1,
              y = k < b.size() ? b[b.size() - 1 - k] : 1;
      if (x != y && x != 1 && y != 1)
        return false;
      result[result.size() - 1 - k] = std::max(x, y);
    }
    return true;
  }

  std::string define(const Shape &shape) {
    values.push_back({"%" + std::to_string(next++), shape});
    body << "  " << values.back().name << " = ";
    return values.back().name;
  }

  void unary(const std::string &op, const Entry &x) {
    Entry input = x;
    define(input.shape);
    body << "nn." << op << " " << input.name << " : " << typeOf(input.shape) << "\n";
  }

  void dropout(const Entry &x) {
    Entry input = x;
    std::string seed = "%s" + std::to_string(next);
    body << "  " << seed << " = nn.constant dense<" << pick(1000) << "> : tensor<i64>\n";
    define(input.shape);
    body << "nn.dropout " << input.name << " rate = 0.25 id = " << next << " seed = " << seed << " step = " << seed
         << " : " << typeOf(input.shape) << "\n";
  }

  void addOp() {
    static const char *const unaryOps[] = {"tanh", "relu", "neg", "tanh"};
    static const char *const binaryOps[] = {"add", "sub", "mul", "maximum", "minimum"};
    Entry x = any(), y = any();
    Shape shape;
    int64_t rank = int64_t(x.shape.size());
    switch (pick(12)) {
    case 0:
      if (pick(4) == 0)
        return dropout(x);
      return unary(unaryOps[pick(4)], x);
    case 1:
    case 2:
    case 3:
      if (!broadcast(x.shape, y.shape, shape))
        return;
      define(shape);
      body << "nn." << binaryOps[pick(5)] << " " << x.name << ", " << y.name << " : ("
           << typeOf(x.shape) << ", " << typeOf(y.shape) << ") -> " << typeOf(shape) << "\n";
      return unary("tanh", values.back()); // keeps numbers small
    case 4:
    case 5:
      return reduce(x);
    case 6:
      if (rank == 0)
        return;
      define(x.shape);
      body << (pick(2) ? "nn.softmax " : "nn.log_softmax ") << x.name << " dim = " << pick(rank)
           << " : " << typeOf(x.shape) << "\n";
      return;
    case 10: {
      if (rank == 0)
        return;
      // Statistics first, so that the rows are the value that comes next.
      Shape rows(x.shape.begin(), x.shape.end() - 1);
      Entry scale;
      for (const Entry &value : values)
        if (value.shape == Shape{x.shape.back()})
          scale = value;
      if (scale.name.empty()) {
        scale = {define({x.shape.back()}), {x.shape.back()}};
        body << "nn.constant dense<0.75> : " << typeOf(scale.shape) << "\n";
      }
      std::string name = "%" + std::to_string(next++);
      values.push_back({name + "#1", rows});
      values.push_back({name + "#0", x.shape});
      if (pick(2))
        body << "  " << name << ":2 = nn.rms_norm " << x.name << ", " << scale.name;
      else
        body << "  " << name << ":3 = nn.layer_norm " << x.name << ", " << scale.name << ", " << scale.name;
      body << " eps = 0.5 : " << typeOf(x.shape) << ", " << typeOf(scale.shape) << "\n";
      return;
    }
    case 7: {
      if (rank < 2)
        return;
      std::vector<int64_t> permutation;
      for (int64_t k = 0; k < rank; ++k)
        permutation.push_back(k);
      std::shuffle(permutation.begin(), permutation.end(), random);
      std::string list;
      for (int64_t k : permutation) {
        shape.push_back(x.shape[k]);
        list += (list.empty() ? "" : ", ") + std::to_string(k);
      }
      define(shape);
      body << "nn.transpose " << x.name << " [" << list << "] : " << typeOf(x.shape) << " -> "
           << typeOf(shape) << "\n";
      return;
    }
    case 8: {
      if (rank == 0)
        return;
      int64_t elements = 1;
      for (int64_t size : x.shape)
        elements *= size;
      shape = pick(2) ? Shape{elements} : Shape(x.shape.rbegin(), x.shape.rend());
      if (shape == x.shape)
        return;
      define(shape);
      values.back().isOperand = x.isOperand;
      body << "nn.reshape " << x.name << " : " << typeOf(x.shape) << " -> " << typeOf(shape)
           << "\n";
      return;
    }
    case 9: {
      shape = related();
      std::string list = "0.5"; // a number, or a table
      if (shape.size() == 1 && pick(2)) {
        list = "[";
        for (int64_t k = 0; k < shape[0]; ++k)
          list += (k ? ", 0." : "0.") + std::to_string(k + 1);
        list += "]";
      }
      define(shape);
      body << "nn.constant dense<" << list << "> : " << typeOf(shape) << "\n";
      return;
    }
    default:
      if (rank == 0)
        return;
      define(x.shape);
      body << "nn.mask " << x.name << " dim = " << pick(rank)
           << " limit = %limit fill = 0.25 : " << typeOf(x.shape) << "\n";
    }
  }

  void reduce(const Entry &x) {
    static const char *const kinds[] = {"sum", "max"};
    if (x.shape.empty())
      return;
    bool keep = pick(2);
    Shape shape;
    std::string dims;
    for (size_t k = 0; k < x.shape.size(); ++k) {
      if (pick(2) || (dims.empty() && k + 1 == x.shape.size())) {
        dims += (dims.empty() ? "" : ", ") + std::to_string(k);
        if (keep)
          shape.push_back(1);
      } else {
        shape.push_back(x.shape[k]);
      }
    }
    define(shape);
    body << "nn.reduce " << kinds[pick(std::size(kinds))] << " " << x.name << " dims = [" << dims << "]"
         << (keep ? " {keep_dims}" : "") << " : " << typeOf(x.shape) << " -> " << typeOf(shape)
         << "\n";
  }

  std::string finish(const std::string &name, const std::string &arguments, unsigned numArguments) {
    std::vector<Entry> results{values.back()};
    for (unsigned k = 0, more = pick(3); k < more; ++k)
      results.push_back(any());
    std::string types, names, inplace;
    std::vector<bool> taken(numArguments, false);
    for (const Entry &result : results) {
      int operand = -1;
      // An operand that is returned may not move into another one.
      if (!result.isOperand && pick(2))
        for (unsigned k = 0; k < numArguments && operand < 0; ++k)
          if (!taken[k] && values[k].shape == result.shape)
            operand = int(k);
      if (operand >= 0)
        taken[operand] = true;
      inplace += (inplace.empty() ? "" : ", ") + std::to_string(operand);
      types += (types.empty() ? "" : ", ") + typeOf(result.shape);
      names += (names.empty() ? "" : ", ") + result.name;
    }
    return "func.func private @" + name + "(" + arguments + ") -> (" + types +
           ") attributes {exec.kernel, exec.inplace = array<i64: " + inplace + ">} {\n" +
           body.str() + "  return " + names + " : " + types + "\n}\n";
  }

  std::mt19937 random;
  Shape space;
  std::vector<Entry> values;
  std::ostringstream body;
  unsigned next = 0;
};

class RandomKernel : public testing::TestWithParam<unsigned> {};

TEST_P(RandomKernel, EqualsTheReference) {
  KernelTester tester;
  Generator generator(GetParam());
  std::string module;
  for (unsigned k = 0; k < 20; ++k)
    module += generator.kernel("k" + std::to_string(k));
  tester.check(module, {.seed = GetParam(), .intLow = 0, .intHigh = 8}, 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomKernel, testing::Range(1u, 11u));

} // namespace
