// Attention of rows whose places in the sequence are told: against a dense computation, cut into blocks that are
// merged, and by the tiles that it computes.
#include "DenseAttention.h"

namespace shoal::rt {
namespace {

using namespace test;

TEST(AttentionPositions, RandomShapesAndMasks) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem p = Generator(seed).positioned();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << p.text());
    Results want = dense(p);
    check(blocked<double>(p), want, 1e-12, "f64");
    check(blocked<float>(p), want, 1e-5, "f32");
  }
}

// In the order of the rows they change no bit, and no tile.
TEST(AttentionPositions, InOrderAsWithout) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Problem p = Generator(seed).problem();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << p.text());
    Results want = blocked<float>(p);
    int64_t tiles = attentionTiles(p.shape, p.masks());
    p.shape.positions = true;
    p.queryPositions.resize(size_t(p.shape.queries));
    p.keyPositions.resize(size_t(p.shape.keys));
    std::iota(p.queryPositions.begin(), p.queryPositions.end(), 0);
    std::iota(p.keyPositions.begin(), p.keyPositions.end(), 0);
    Results got = blocked<float>(p);
    EXPECT_EQ(got.o, want.o);
    EXPECT_EQ(got.lse, want.lse);
    EXPECT_EQ(got.dq, want.dq);
    EXPECT_EQ(got.dk, want.dk);
    EXPECT_EQ(got.dv, want.dv);
    EXPECT_EQ(attentionTiles(p.shape, p.masks()), tiles);
  }
}

// Positions at the end of what an i64 holds, where a window must not wrap around.
TEST(AttentionPositions, AtTheEndOfTheNumbers) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (bool causal : {false, true})
    for (int64_t window : {0, 1, 3, INT32_MAX}) {
      Problem p;
      p.shape = {1, 6, 6, 1, 1, 4, causal, window, false, 0, DType::F64, true};
      Generator(5).fill(p);
      p.queryPositions = {0, kMost, kMost - 1, kLeast, 1, kMost - 5};
      for (bool increasing : {false, true}) {
        p.keyPositions = {0, 2, kLeast, kMost - 3, kMost - 1, kMost};
        if (!increasing)
          std::reverse(p.keyPositions.begin(), p.keyPositions.end());
        SCOPED_TRACE(testing::Message() << p.text() << ", increasing " << increasing);
        check(blocked<double>(p), dense(p), 1e-12, "f64");
      }
    }
}

// The rows of a range of keys or of queries, with their positions.
template <typename Row>
std::vector<Row> rowsOf(const std::vector<Row> &all, int64_t batch, int64_t rows, int64_t begin, int64_t end) {
  int64_t size = int64_t(all.size()) / (batch * rows);
  std::vector<Row> part;
  for (int64_t b = 0; b < batch; ++b)
    part.insert(part.end(), all.begin() + (b * rows + begin) * size, all.begin() + (b * rows + end) * size);
  return part;
}

// Blocks of keys, merged by the log-sum-exps: as a ring of ranks does that hold zigzag's parts of a sequence that is no
// multiple of anything, whose last rows do not exist.
TEST(AttentionPositions, BlocksMerge) {
  for (int64_t window : {0, 50}) {
    constexpr int64_t kRanks = 3, kRows = 70, kTokens = 200;
    Problem p;
    p.shape = {2, kRanks * kRows, kRanks * kRows, 2, 2, 8, true, window, false, 0, DType::F64, true};
    Generator(7).fill(p);
    for (int64_t rank = 0, front = 0, back = kTokens; rank < kRanks; ++rank) {
      int64_t rows = std::min(kRows, kTokens - rank * kRows), fronts = (rows + 1) / 2, backs = rows - fronts;
      for (int64_t i = 0; i < kRows; ++i)
        p.queryPositions.push_back(i < fronts ? front + i : i < rows ? back - backs + i - fronts : -1);
      front += fronts;
      back -= backs;
    }
    p.keyPositions = p.queryPositions;
    Results want = dense(p);

    Problem part = p;
    part.shape.keys = kRows;
    Results got{Values(p.q.size()), Values(want.lse.size(), -kInfinity), Values(p.q.size()), {}, {}};
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      auto keys = [&](const auto &all) { return rowsOf(all, 2, kRanks * kRows, rank * kRows, (rank + 1) * kRows); };
      part.k = keys(p.k);
      part.v = keys(p.v);
      part.keyPositions = {p.keyPositions.begin() + rank * kRows, p.keyPositions.begin() + (rank + 1) * kRows};
      Results block = blocked<double>(part);
      for (size_t row = 0; row < got.lse.size(); ++row) {
        double most = std::max(got.lse[row], block.lse[row]), least = std::min(got.lse[row], block.lse[row]);
        if (most == -kInfinity)
          continue;
        double lse = most + std::log1p(std::exp(least - most));
        for (size_t x = row * 8; x < (row + 1) * 8; ++x)
          got.o[x] = std::exp(got.lse[row] - lse) * got.o[x] + std::exp(block.lse[row] - lse) * block.o[x];
        got.lse[row] = lse;
      }
    }
    SCOPED_TRACE(p.text());
    expectClose(got.o, want.o, norm(want.o), 1e-12, "o");
    expectClose(got.lse, want.lse, norm(want.lse), 1e-12, "lse");
    // Backward each block gets the log-sum-exps and the o of all.
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      auto keys = [&](const auto &all) { return rowsOf(all, 2, kRanks * kRows, rank * kRows, (rank + 1) * kRows); };
      Values k = keys(p.k), v = keys(p.v), dq(p.q.size()), dk(k.size()), dv(k.size());
      std::vector<int64_t> places(p.keyPositions.begin() + rank * kRows, p.keyPositions.begin() + (rank + 1) * kRows);
      Values workspace(attentionWorkspace(part.shape, true));
      attentionGrad(part.shape, {p.cotangent.data(),
                                 p.q.data(),
                                 k.data(),
                                 v.data(),
                                 got.o.data(),
                                 got.lse.data(),
                                 {nullptr, nullptr, p.queryPositions.data(), places.data()},
                                 dq.data(),
                                 dk.data(),
                                 dv.data(),
                                 workspace.data()});
      for (size_t i = 0; i < dq.size(); ++i)
        got.dq[i] += dq[i];
      expectClose(dk, keys(want.dk), norm(want.dk), 1e-12, "dk");
      expectClose(dv, keys(want.dv), norm(want.dv), 1e-12, "dv");
    }
    expectClose(got.dq, want.dq, norm(want.dq), 1e-12, "dq");
  }
}

// A call whose mask leaves nothing reads nothing: not a number of its tensors reaches what it writes.
TEST(AttentionPositions, NothingIsReadOfWhatNobodySees) {
  for (auto [queries, keys] : {std::pair{0, 500}, std::pair{-600, 0}, std::pair{0, -900}}) {
    Problem p;
    p.shape = {1, 300, 280, 2, 2, 8, true, 0, false, 0.5, DType::F64, true};
    p.q = p.cotangent = Values(size_t(p.queryElements()), std::nan(""));
    p.k = p.v = Values(size_t(p.keyElements()), std::nan(""));
    p.queryPositions.resize(300);
    p.keyPositions.resize(280);
    std::iota(p.queryPositions.begin(), p.queryPositions.end(), queries);
    std::iota(p.keyPositions.begin(), p.keyPositions.end(), keys);
    EXPECT_EQ(attentionTiles(p.shape, p.masks()), 0);
    for (const Results &r :
         {blocked<float>(p), blocked<float, BFloat16>(p), blocked<float, BFloat16, float, float>(p)}) {
      EXPECT_EQ(r.lse, Values(r.lse.size(), -kInfinity));
      for (const Values *values : {&r.o, &r.dq, &r.dk, &r.dv})
        EXPECT_EQ(*values, Values(values->size(), 0));
    }
  }
}

TEST(AttentionPositions, LargeScoresStayFinite) {
  Problem p;
  p.shape = {1, 300, 300, 1, 1, 64, true, 0, false, 0, DType::F64, true};
  Generator generator(2);
  generator.fill(p, 1000);
  p.queryPositions = generator.positions(300);
  p.keyPositions = generator.positions(300);
  Results want = dense(p);
  EXPECT_GT(norm(want.lse) / std::sqrt(double(want.lse.size())), 300);
  check(blocked<double>(p), want, 1e-9, "f64");
  Results narrow = blocked<float>(p);
  expectClose(narrow.lse, want.lse, norm(want.lse), 1e-5, "lse");
  for (const Values *values : {&narrow.o, &narrow.dq, &narrow.dk, &narrow.dv})
    for (double value : *values)
      ASSERT_TRUE(std::isfinite(value));
}

int64_t countTiles(AttentionShape shape, std::vector<int64_t> queries, std::vector<int64_t> keys) {
  shape.positions = true;
  shape.queries = int64_t(queries.size());
  shape.keys = int64_t(keys.size());
  return attentionTiles(shape, {nullptr, nullptr, queries.data(), keys.data()});
}

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

// By hand: tiles of 64 queries against at most 256 keys.
TEST(AttentionPositions, Tiles) {
  AttentionShape causal{3, 512, 512, 2, 2, 8, true, 0, false, 1, DType::F32};
  EXPECT_EQ(attentionTiles(causal, {}), 12 * (1 + 1 + 1 + 1 + 2 + 2 + 2 + 2));
  causal.batch = causal.kvHeads = causal.groups = 1;
  EXPECT_EQ(countTiles(causal, range(0, 512), range(0, 512)), 12);
  EXPECT_EQ(countTiles(causal, range(512, 1024), range(0, 512)), 16); // all of them
  EXPECT_EQ(countTiles(causal, range(0, 512), range(512, 1024)), 0);
  EXPECT_EQ(countTiles(causal, range(0, 512), range(511, 1023)), 1);
  // Of keys in no order only tiles that are wholly masked are left out: the later keys for the first four tiles of
  // queries.
  std::vector<int64_t> backwards = range(0, 512);
  std::reverse(backwards.begin(), backwards.begin() + 256);
  std::reverse(backwards.begin() + 256, backwards.end());
  EXPECT_EQ(countTiles(causal, range(0, 512), backwards), 12);
  // Padding costs nothing, nor do keys between the windows of two parts.
  std::vector<int64_t> padded = range(0, 512);
  std::fill(padded.begin() + 10, padded.end(), -1);
  EXPECT_EQ(countTiles(causal, padded, range(0, 512)), 1);
  EXPECT_EQ(countTiles(causal, range(0, 512), padded), 8);
  AttentionShape window = causal;
  window.window = 2;
  std::vector<int64_t> parts = range(0, 32), last = range(2000, 2032);
  parts.insert(parts.end(), last.begin(), last.end());
  EXPECT_EQ(countTiles(window, parts, range(0, 2048)), 2);
}

// A tile of keys in no order is left out where not one pair is visible, and no sooner.
TEST(AttentionPositions, TilesAtTheEdgeOfAMask) {
  auto count = [](bool causal, int64_t window, std::vector<int64_t> keys) {
    return countTiles({1, 64, 2, 1, 1, 8, causal, window, false, 1, DType::F32}, range(64, 128), std::move(keys));
  };
  EXPECT_EQ(count(true, 0, {200, 127}), 1);
  EXPECT_EQ(count(true, 0, {200, 128}), 0);
  for (bool causal : {false, true}) {
    EXPECT_EQ(count(causal, 2, {63, 10}), 1);
    EXPECT_EQ(count(causal, 2, {62, 10}), 0);
  }
  EXPECT_EQ(count(false, 2, {300, 128}), 1);
  EXPECT_EQ(count(false, 2, {300, 129}), 0);
  // Keys at one place are in order, so that the range that is seen is one tile, and not two of the three of all keys.
  std::vector<int64_t> keys(700, 64);
  std::fill(keys.begin() + 240, keys.end(), 500);
  EXPECT_EQ(count(true, 0, keys), 1);
  keys[1] = 63;
  EXPECT_EQ(count(true, 0, keys), 2);
}

// Every rank of a ring has the same work in every step, of zigzag's parts of a causal sequence.
TEST(AttentionPositions, ZigzagIsBalanced) {
  constexpr int64_t kRanks = 4, kChunk = 256;
  AttentionShape causal{1, 2 * kChunk, 2 * kChunk, 1, 1, 8, true, 0, false, 1, DType::F32};
  auto part = [](int64_t rank) {
    std::vector<int64_t> places = range(rank * kChunk, (rank + 1) * kChunk),
                         back = range((2 * kRanks - 1 - rank) * kChunk, (2 * kRanks - rank) * kChunk);
    places.insert(places.end(), back.begin(), back.end());
    return places;
  };
  for (int64_t step = 0; step < kRanks; ++step)
    for (int64_t rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(countTiles(causal, part(rank), part((rank + kRanks - step) % kRanks)), step == 0 ? 12 : 8)
          << "rank " << rank << " in step " << step;
}

} // namespace
} // namespace shoal::rt
