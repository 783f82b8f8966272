// The closed form of nn.zigzag against lists that are built rank by rank, as its definition says.
#include "shoal/Dialect/NN/IR/Zigzag.h"

#include <gtest/gtest.h>

#include <vector>

using shoal::nn::Zigzag;

namespace {

/// The row at each place: every rank takes the first half of its rows from the front of what is left of the sequence,
/// the others from its end.
std::vector<int64_t> dealRows(int64_t size, int64_t ranks) {
  std::vector<int64_t> order;
  int64_t begin = 0, end = size, rows = (size + ranks - 1) / ranks;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t stored = std::max<int64_t>(0, std::min((rank + 1) * rows, size) - rank * rows);
    int64_t front = (stored + 1) / 2, back = stored - front;
    for (int64_t i = 0; i < front; ++i)
      order.push_back(begin++);
    end -= back;
    for (int64_t i = 0; i < back; ++i)
      order.push_back(end + i);
  }
  return order;
}

TEST(Zigzag, EqualsTheDefinition) {
  for (int64_t size = 1; size <= 50; ++size)
    for (int64_t ranks = 1; ranks <= 60; ++ranks) {
      Zigzag order(size, ranks);
      std::vector<int64_t> dealt = dealRows(size, ranks);
      std::vector<bool> seen(size, false);
      bool isIdentity = true;
      for (int64_t place = 0; place < size; ++place) {
        int64_t row = dealt[place];
        ASSERT_FALSE(seen[row]) << row << " of " << size << " over " << ranks;
        seen[row] = true;
        isIdentity &= row == place;
        ASSERT_EQ(order.rowAt(place), row) << place << " of " << size << " over " << ranks;
        ASSERT_EQ(order.placeOf(row), place) << row << " of " << size << " over " << ranks;
      }
      EXPECT_EQ(order.isIdentity(), isIdentity) << size << " over " << ranks;
    }
}

// Rank r of N has chunks r and 2N - 1 - r.
TEST(Zigzag, IsTheFieldsWhereChunksAreEqual) {
  for (int64_t ranks : {2, 3, 8})
    for (int64_t chunk : {1, 5}) {
      Zigzag order(2 * ranks * chunk, ranks);
      for (int64_t place = 0; place < order.size; ++place) {
        int64_t rank = place / (2 * chunk), half = place / chunk % 2;
        EXPECT_EQ(order.rowAt(place) / chunk, half ? 2 * ranks - 1 - rank : rank);
        EXPECT_EQ(order.rowAt(place) % chunk, place % chunk);
      }
    }
}

// Sizes whose products with ranks leave 64 bits.
TEST(Zigzag, RanksPastAnySize) {
  Zigzag order(7, INT64_MAX);
  EXPECT_TRUE(order.isIdentity());
  EXPECT_EQ(order.rowAt(6), 6);
  EXPECT_EQ(order.placeOf(6), 6);
}

} // namespace
