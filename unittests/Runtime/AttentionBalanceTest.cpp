// Tiles of scores that the ranks of a ring compute under a causal mask: in zigzag order equally many, else the more,
// the later a rank's tokens are.
#include "shoal-rt/attention_tiles.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt::test {
namespace {

using Positions = std::vector<int64_t>;

void append(Positions &positions, int64_t begin, int64_t size) {
  positions.resize(positions.size() + size_t(size));
  std::iota(positions.end() - size, positions.end(), begin);
}

// Chunks r and 2N - 1 - r of 2N.
Positions zigzagOf(int64_t rank, int64_t ranks, int64_t chunk) {
  Positions positions;
  append(positions, rank * chunk, chunk);
  append(positions, (2 * ranks - 1 - rank) * chunk, chunk);
  return positions;
}
Positions plainOf(int64_t rank, int64_t, int64_t chunk) {
  Positions positions;
  append(positions, rank * 2 * chunk, 2 * chunk);
  return positions;
}

struct Work {
  std::vector<int64_t> tiles, scores; // of each rank
};

// Of each rank's queries with the keys of all ranks, one after the other.
Work countWork(Positions (*positionsOf)(int64_t, int64_t, int64_t), int64_t ranks, int64_t chunk) {
  AttentionShape shape{};
  shape.batch = shape.kvHeads = shape.groups = 1;
  shape.queries = shape.keys = 2 * chunk;
  shape.headSize = 64;
  shape.causal = shape.positions = true;
  Work work;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Positions queryPositions = positionsOf(rank, ranks, chunk);
    int64_t tiles = 0, scores = 0;
    for (int64_t other = 0; other < ranks; ++other) {
      Positions keyPositions = positionsOf(other, ranks, chunk);
      AttentionMasks masks;
      masks.queryPositions = queryPositions.data();
      masks.keyPositions = keyPositions.data();
      tiles += attentionTiles(shape, masks);
      AttentionTiles call(shape, masks);
      call.forEachQueryTile([&](AttentionTiles::Range queries) {
        call.select(queries);
        call.forEachKeyTile(0, [&](AttentionTiles::Range keys) { scores += queries.size() * keys.size(); });
      });
    }
    work.tiles.push_back(tiles);
    work.scores.push_back(scores);
  }
  return work;
}

TEST(AttentionBalance, EqualTilesOfWholeTiles) {
  for (int64_t ranks = 2; ranks <= 8; ++ranks)
    for (int64_t chunk : {256, 512, 768, 1024, 2048}) {
      Work zigzag = countWork(zigzagOf, ranks, chunk), plain = countWork(plainOf, ranks, chunk);
      EXPECT_EQ(zigzag.tiles, std::vector<int64_t>(size_t(ranks), zigzag.tiles[0])) << ranks << " x 2 x " << chunk;
      EXPECT_EQ(zigzag.scores, std::vector<int64_t>(size_t(ranks), zigzag.scores[0])) << ranks << " x 2 x " << chunk;
      EXPECT_GE(plain.tiles.back(), 2 * plain.tiles[0]) << ranks << " x 2 x " << chunk;
    }
}

// Tiles of keys are as wide as what their queries see, so that there may be more, and narrower ones; the scores in them
// are equally many, but for the last rank, whose chunks are neighbours in the sequence and need not be cut.
TEST(AttentionBalance, EqualScoresOfAnyChunk) {
  for (int64_t ranks = 2; ranks <= 8; ++ranks)
    for (int64_t chunk : {1, 5, 17, 33, 63, 65, 100, 200, 257, 700, 1000, 1500}) {
      std::vector<int64_t> scores = countWork(zigzagOf, ranks, chunk).scores;
      std::vector<int64_t> plain = countWork(plainOf, ranks, chunk).scores;
      for (int64_t rank = 0; rank + 1 < ranks; ++rank)
        EXPECT_EQ(scores[size_t(rank)], scores[0]) << ranks << " x 2 x " << chunk << ", rank " << rank;
      EXPECT_LE(double(scores.back()), (chunk < 64 ? 1.2 : 1.04) * double(scores[0])) << ranks << " x 2 x " << chunk;
      EXPECT_GE(double(plain.back()), 1.5 * double(plain[0])) << ranks << " x 2 x " << chunk;
    }
}

} // namespace
} // namespace shoal::rt::test
