// The passes over rows against <cmath>, at lengths around the vector sizes, on every vector unit
// that this processor has.
#include "host/row_passes.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

template <typename T> class RowPassesTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RowPassesTest, Types);

constexpr int64_t kSizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200};

// Multiples of 1/4 of both signs.
template <typename T> std::vector<T> numbers(int64_t size) {
  std::vector<T> row;
  for (int64_t i = 0; i < size; ++i)
    row.push_back(T(i * 37 % 101 - 50) / 4);
  return row;
}

// NaN with all bits of its fraction set.
float fullNaN(float) { return std::bit_cast<float>(~0u); }
double fullNaN(double) { return std::bit_cast<double>(~0ull); }

TYPED_TEST(RowPassesTest, ExpIsRightToTwoUnitsInTheLastPlace) {
  using T = TypeParam;
  T least = std::log(std::numeric_limits<T>::min()), most = std::log(std::numeric_limits<T>::max());
  std::vector<T> x;
  for (int i = 0; i <= 200000; ++i)
    x.push_back(least + T(1) + (most - least - T(2)) * T(i) / T(200000));
  for (int i = -1000; i <= 1000; ++i)
    x.push_back(T(i) / T(1 << 20));
  for (const RowPasses<T> &passes : runnableRowPasses<T>()) {
    std::vector<T> row = x;
    passes.expAndSum(row.data(), int64_t(row.size()), T(0));
    for (size_t i = 0; i < row.size(); ++i) {
      long double want = std::exp(static_cast<long double>(x[i]));
      ASSERT_LE(std::abs((row[i] - want) / want), 2 * std::numeric_limits<T>::epsilon()) << x[i];
    }
  }
}

TYPED_TEST(RowPassesTest, ExpOfSpecialValues) {
  using T = TypeParam;
  T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const RowPasses<T> &passes : runnableRowPasses<T>())
    for (int64_t size : {int64_t(1), int64_t(40)}) { // one by one and in vectors
      std::vector<T> row(size_t(size), T(0));
      EXPECT_EQ(passes.expAndSum(row.data(), size, T(0)), T(size));
      for (T x : row)
        EXPECT_EQ(x, T(1));
      for (T tiny : {-infinity, T(-1e5)}) {
        row.assign(size_t(size), tiny);
        EXPECT_EQ(passes.expAndSum(row.data(), size, T(3)), T(0));
        for (T x : row)
          EXPECT_EQ(x, T(0));
      }
      for (T odd : {nan, -nan, fullNaN(T())}) {
        row.assign(size_t(size), odd);
        EXPECT_TRUE(std::isnan(passes.expAndSum(row.data(), size, T(0))));
        for (T x : row)
          EXPECT_TRUE(std::isnan(x));
      }
    }
}

TYPED_TEST(RowPassesTest, EveryLength) {
  using T = TypeParam;
  for (const RowPasses<T> &passes : runnableRowPasses<T>())
    for (int64_t size : kSizes) {
      SCOPED_TRACE(size);
      std::vector<T> row = numbers<T>(size), other(row.rbegin(), row.rend());
      T most = -std::numeric_limits<T>::infinity(), dot = 0, sum = 0;
      for (size_t i = 0; i < row.size(); ++i) {
        most = std::max(most, row[i]);
        dot += row[i] * other[i];
        sum += std::exp(row[i] - T(13));
      }
      EXPECT_EQ(passes.max(row.data(), size), most);
      EXPECT_EQ(passes.dot(row.data(), other.data(), size), dot); // exact: multiples of 1/16
      std::vector<T> weighed = row, scaled = row, exponentials = row;
      passes.subtractAndWeigh(weighed.data(), other.data(), size, T(2));
      passes.scale(scaled.data(), size, T(3));
      EXPECT_NEAR(passes.expAndSum(exponentials.data(), size, T(13)), sum, 1e-5 * double(sum));
      for (size_t i = 0; i < row.size(); ++i) {
        EXPECT_EQ(weighed[i], other[i] * (row[i] - T(2)));
        EXPECT_EQ(scaled[i], row[i] * T(3));
      }
    }
}

} // namespace
} // namespace shoal::rt
