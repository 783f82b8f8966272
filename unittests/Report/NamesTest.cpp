// Names that differ in numbers only become one; others stay apart.
#include "shoal/Support/FoldedNames.h"

#include "gtest/gtest.h"

using namespace shoal;

namespace {

std::vector<std::string> make(const char *before, std::initializer_list<int> numbers, const char *after) {
  std::vector<std::string> names;
  for (int number : numbers)
    names.push_back(before + std::to_string(number) + after);
  return names;
}

TEST(Names, OnlyNumbersAreMasked) {
  EXPECT_EQ(maskNumbers("h.0.ln_1.weight"), maskNumbers("h.11.ln_2.weight"));
  EXPECT_NE(maskNumbers("h.0.w"), maskNumbers("h.0.b"));
  EXPECT_NE(maskNumbers("h.0"), maskNumbers("h0"));
}

TEST(Names, NumbersInARowAreARange) {
  EXPECT_EQ(foldNames(make("h.", {0, 1, 2, 3}, ".ln_1.weight")), "h.{0…3}.ln_1.weight");
  EXPECT_EQ(foldNames(make("h.", {9, 10, 11}, "")), "h.{9…11}");
  EXPECT_EQ(foldNames(make("w", {1, 2}, "")), "w{1,2}");
  EXPECT_EQ(foldNames(make("w", {1, 5, 3}, "")), "w{1,3,5}");
  EXPECT_EQ(foldNames(make("w", {1, 2, 4, 8, 16}, "")), "w*");
  EXPECT_EQ(foldNames(make("w", {7}, "")), "w7");
  EXPECT_EQ(foldNames(make("w", {7, 7}, "")), "w7");
}

TEST(Names, StarsStandForWhatDiffers) {
  EXPECT_EQ(starNames(make("h.", {0, 1}, ".ln_1.weight")), "h.*.ln_1.weight");
}

TEST(Names, LayersAreASpan) {
  EXPECT_EQ(spanNames({}), "");
  EXPECT_EQ(spanNames(make("h.", {0}, "")), "h.0");
  EXPECT_EQ(spanNames(make("h.", {0, 1}, "")), "h.0 and h.1");
  EXPECT_EQ(spanNames(make("h.", {0, 1, 2}, "")), "h.0 … h.2");
}

} // namespace
