// The order of fusion's nodes against a plain vector, through many moves.
#include "NodeOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace shoal::exec {
namespace {

void expectOrder(const NodeOrder &order, const std::vector<unsigned> &wanted) {
  llvm::SmallVector<unsigned> nodes = order.nodes();
  ASSERT_EQ(std::vector<unsigned>(nodes.begin(), nodes.end()), wanted);
  for (size_t i = 1; i < wanted.size(); ++i)
    ASSERT_TRUE(order.isBefore(wanted[i - 1], wanted[i])) << "at " << i;
}

TEST(NodeOrderTest, movesAndRemovesAsAVectorDoes) {
  std::mt19937 random(7);
  std::vector<unsigned> plain(40);
  std::iota(plain.begin(), plain.end(), 0);
  NodeOrder order(plain.size());
  expectOrder(order, plain);
  for (int round = 0; round < 2000; ++round) {
    unsigned node = plain[random() % plain.size()];
    llvm::SmallVector<unsigned> moved;
    for (unsigned other : plain)
      if (other != node && random() % 8 == 0)
        moved.push_back(other);
    auto isMoved = [&](unsigned other) {
      return std::find(moved.begin(), moved.end(), other) != moved.end();
    };
    plain.erase(std::remove_if(plain.begin(), plain.end(), isMoved), plain.end());
    plain.insert(std::find(plain.begin(), plain.end(), node), moved.begin(), moved.end());
    order.moveBefore(node, moved);
    if (round % 100 == 99) {
      order.remove(plain.back());
      plain.pop_back();
    }
    expectOrder(order, plain);
  }
}

// Every move halves the gap before node 1, which 64 bits allow 64 times at most.
TEST(NodeOrderTest, usedUpGapsAreSpreadAnew) {
  NodeOrder order(3);
  for (int round = 0; round < 500; ++round) {
    order.moveBefore(1, {round % 2 ? 0u : 2u});
    ASSERT_TRUE(order.isBefore(round % 2 ? 0 : 2, 1));
  }
  expectOrder(order, {2, 0, 1});
}

} // namespace
} // namespace shoal::exec
