// Blocked attention and its gradient against a dense computation in f64: random shapes, masks and
// segments, in f64, f32 and bf16.
#include "DenseAttention.h"

namespace shoal::rt {
namespace {

using namespace test;

TEST(Attention, RandomShapesAndMasks) {
  for (uint32_t seed = 0; seed < 36; ++seed) {
    Problem p = Generator(seed).problem();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << p.text());
    Results want = dense(p);
    check(blocked<double>(p), want, 1e-12, "f64");
    check(blocked<float>(p), want, 1e-5, "f32");
  }
}

// Sizes at the edges of tiles and vectors; the last has the larger tiles of long causal sequences.
TEST(Attention, TileEdges) {
  for (int64_t queries : {1, 2, 127, 128, 129, 255, 256, 257, 2049})
    for (bool causal : {false, true}) {
      if (queries == 2049 && !causal)
        continue;
      Problem p;
      p.shape = {1, queries, queries, 1, 1, 3, causal, 0, false, 0, DType::F64};
      Generator(uint32_t(queries)).fill(p);
      SCOPED_TRACE(p.text());
      Results want = dense(p);
      check(blocked<double>(p), want, 1e-12, "f64");
      check(blocked<float>(p), want, 1e-5, "f32");
    }
}

// A window must skip tiles on both sides, and see exactly its band.
TEST(Attention, NarrowWindowInALongSequence) {
  for (bool causal : {false, true})
    for (int64_t window : {1, 130}) {
      Problem p;
      p.shape = {1, 400, 400, 1, 2, 6, causal, window, false, 0, DType::F64};
      Generator(uint32_t(window)).fill(p);
      SCOPED_TRACE(p.text());
      Results want = dense(p);
      check(blocked<double>(p), want, 1e-12, "f64");
      check(blocked<float>(p), want, 1e-5, "f32");
    }
}

// Segments that no key has: o = 0, lse = -inf and no gradient, beside rows that see keys.
TEST(Attention, QueriesThatSeeNothing) {
  Problem p;
  p.shape = {2, 300, 280, 2, 2, 24, false, 0, true, 0, DType::F64};
  Generator(1).fill(p);
  p.querySegments.assign(600, 1);
  p.keySegments.assign(560, 1);
  for (size_t i = 0; i < 600; i += 3)
    p.querySegments[i] = 7;
  std::fill_n(p.keySegments.begin() + 280, 280, 9); // the whole second row
  Results want = dense(p), wide = blocked<double>(p), narrow = blocked<float>(p);
  check(wide, want, 1e-12, "f64");
  check(narrow, want, 1e-5, "f32");
  EXPECT_EQ(narrow.lse[0], -kInfinity);
  for (size_t i = 300 * 2 * 2 * 24; i < want.o.size(); ++i) {
    ASSERT_EQ(narrow.o[i], 0);
    ASSERT_EQ(narrow.dq[i], 0);
  }
  for (size_t i = 280 * 2 * 24; i < want.dk.size(); ++i) {
    ASSERT_EQ(narrow.dk[i], 0);
    ASSERT_EQ(narrow.dv[i], 0);
  }
}

// Ids are any numbers, the smallest beside the largest.
TEST(Attention, SegmentsOfAnyNumber) {
  Problem p;
  p.shape = {1, 130, 130, 1, 1, 8, false, 0, true, 0, DType::F64};
  Generator(3).fill(p);
  p.querySegments.assign(130, std::numeric_limits<int64_t>::min());
  std::fill_n(p.querySegments.begin() + 50, 80, std::numeric_limits<int64_t>::max());
  p.keySegments = p.querySegments;
  Results want = dense(p);
  check(blocked<double>(p), want, 1e-12, "f64");
  check(blocked<float>(p), want, 1e-5, "f32");
}

// Scores of size 1000 overflow exp unless the maximum is taken off. In f32 they are themselves only
// good to 1e-4, hence the tolerance.
TEST(Attention, LargeScoresStayFinite) {
  Problem p;
  p.shape = {1, 300, 300, 1, 1, 64, true, 0, false, 0, DType::F64};
  Generator(2).fill(p, 1000);
  Results want = dense(p);
  EXPECT_GT(norm(want.lse) / std::sqrt(double(want.lse.size())), 1000);
  check(blocked<double>(p), want, 1e-9, "f64");
  Results narrow = blocked<float>(p);
  expectClose(narrow.o, want.o, norm(want.o), 1e-3, "o");
  expectClose(narrow.lse, want.lse, norm(want.lse), 1e-5, "lse");
  for (double value : narrow.dq)
    ASSERT_TRUE(std::isfinite(value));
}

// A number that is none reaches the outputs that depend on it, and no others.
TEST(Attention, NotANumberStaysInItsHead) {
  Problem p;
  p.shape = {1, 140, 140, 2, 1, 8, false, 0, false, 0, DType::F64};
  Generator(3).fill(p);
  Results clean = blocked<float>(p);
  p.k[8] = std::numeric_limits<double>::quiet_NaN(); // key 0 of head 1
  Results got = blocked<float>(p);
  for (size_t row = 0; row < got.lse.size(); ++row) {
    EXPECT_EQ(std::isnan(got.lse[row]), row % 2 == 1) << row;
    EXPECT_EQ(std::isnan(got.o[row * 8]), row % 2 == 1) << row;
    if (row % 2 == 0)
      EXPECT_EQ(got.o[row * 8], clean.o[row * 8]);
  }
}

// Of numbers that bf16 holds: what is written is rounded once, to 8 bits, and log-sum-exps not at all. The gradient
// reads o as it was written, so that it is as far from the one of exact numbers as o is.
TEST(Attention, Bf16IsComputedInF32) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    Problem p = Generator(seed).problem();
    for (Values *values : {&p.q, &p.k, &p.v, &p.cotangent})
      for (double &value : *values)
        value = BFloat16(value);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << p.text());
    Results want = dense(p), got = blocked<float, BFloat16>(p);
    check(got, want, 0x1p-8, "bf16");
    expectClose(got.lse, want.lse, std::hypot(norm(want.lse), std::sqrt(double(want.lse.size()))), 1e-5, "lse");
    Results wide = blocked<float>(p);
    for (size_t i = 0; i < got.o.size(); ++i)
      ASSERT_EQ(got.o[i], double(BFloat16(wide.o[i]))) << i;
    for (size_t i = 0; i < got.dv.size(); ++i)
      ASSERT_EQ(got.dv[i], double(BFloat16(wide.dv[i]))) << i;
  }
}

// What is merged or added up with others is not rounded: it has the bits of a computation on f32 tensors.
TEST(Attention, Bf16WithF32Results) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    Generator generator(seed);
    Problem p = seed % 2 ? generator.positioned() : generator.problem();
    for (Values *values : {&p.q, &p.k, &p.v, &p.cotangent})
      for (double &value : *values)
        value = BFloat16(value);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << p.text());
    Results f32 = blocked<float>(p), wide = blocked<float, BFloat16, float, float>(p);
    EXPECT_EQ(wide.o, f32.o);
    EXPECT_EQ(wide.lse, f32.lse);
    EXPECT_EQ(wide.dq, f32.dq);
    EXPECT_EQ(wide.dk, f32.dk);
    EXPECT_EQ(wide.dv, f32.dv);
    // Only o, or only the gradients, of which the latter then read an o that was rounded.
    Results wideO = blocked<float, BFloat16, float>(p), narrow = blocked<float, BFloat16>(p);
    Results wideGrads = blocked<float, BFloat16, BFloat16, float>(p);
    EXPECT_EQ(wideO.o, f32.o);
    EXPECT_EQ(wideGrads.o, narrow.o);
    for (size_t i = 0; i < p.q.size(); ++i) {
      ASSERT_EQ(wideO.dq[i], double(BFloat16(f32.dq[i])));
      ASSERT_EQ(narrow.dq[i], double(BFloat16(wideGrads.dq[i])));
    }
    for (size_t i = 0; i < p.k.size(); ++i) {
      ASSERT_EQ(wideO.dk[i], double(BFloat16(f32.dk[i])));
      ASSERT_EQ(narrow.dk[i], double(BFloat16(wideGrads.dk[i])));
      ASSERT_EQ(narrow.dv[i], double(BFloat16(wideGrads.dv[i])));
    }
  }
}

// The score matrix is never stored.
TEST(Attention, WorkspaceDoesNotGrowWithTheSequence) {
  AttentionShape shape = {1, 4096, 4096, 8, 1, 64, true, 0, false, 0.125, DType::F32};
  uint64_t at4k = attentionWorkspace(shape, true);
  shape.queries = shape.keys = 1 << 20;
  EXPECT_EQ(attentionWorkspace(shape, true), at4k);
  EXPECT_EQ(at4k * sizeof(float), 256u * (2 * 256 + 1) * 4);
}

} // namespace
} // namespace shoal::rt
