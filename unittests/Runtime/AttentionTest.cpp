// Blocked attention and its gradient against a dense computation in f64: random shapes, masks and
// segments, in f64, f32 and bf16.
#include "core/element.h"
#include "host/attention.h"

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

struct Problem {
  AttentionShape shape{};
  Values q, k, v, cotangent;
  std::vector<int64_t> querySegments, keySegments;

  int64_t queryElements() const {
    return shape.batch * shape.queries * shape.kvHeads * shape.groups * shape.headSize;
  }
  int64_t keyElements() const { return shape.batch * shape.keys * shape.kvHeads * shape.headSize; }
  std::string text() const {
    std::ostringstream out;
    out << shape.batch << " rows, " << shape.queries << " queries, " << shape.keys << " keys, "
        << shape.kvHeads << " x " << shape.groups << " heads of " << shape.headSize << ", causal "
        << shape.causal << ", window " << shape.window << ", segments " << shape.segments;
    return out.str();
  }
};

struct Results {
  Values o, lse, dq, dk, dv;
};

bool isVisible(const Problem &p, int64_t batch, int64_t i, int64_t j) {
  const AttentionShape &s = p.shape;
  if (s.causal && j > i)
    return false;
  if (s.window != 0 && (i - j >= s.window || j - i >= s.window))
    return false;
  return !s.segments || p.querySegments[size_t(batch * s.queries + i)] ==
                            p.keySegments[size_t(batch * s.keys + j)];
}

// By the definition, one query at a time.
Results dense(const Problem &p) {
  const AttentionShape &s = p.shape;
  int64_t e = s.headSize;
  Results r{Values(p.q.size()), Values(p.q.size() / size_t(e)), Values(p.q.size()),
            Values(p.k.size()), Values(p.k.size())};
  for (int64_t batch = 0; batch < s.batch; ++batch)
    for (int64_t i = 0; i < s.queries; ++i)
      for (int64_t kv = 0; kv < s.kvHeads; ++kv)
        for (int64_t g = 0; g < s.groups; ++g) {
          int64_t row = ((batch * s.queries + i) * s.kvHeads + kv) * s.groups + g;
          const double *q = p.q.data() + row * e, *cotangent = p.cotangent.data() + row * e;
          auto key = [&](int64_t j) { return ((batch * s.keys + j) * s.kvHeads + kv) * e; };
          Values weights(size_t(s.keys), -kInfinity);
          double most = -kInfinity, sum = 0;
          for (int64_t j = 0; j < s.keys; ++j) {
            if (!isVisible(p, batch, i, j))
              continue;
            double score = 0;
            for (int64_t x = 0; x < e; ++x)
              score += q[x] * p.k[size_t(key(j) + x)];
            weights[size_t(j)] = score * s.scale;
            most = std::max(most, weights[size_t(j)]);
          }
          r.lse[size_t(row)] = -kInfinity;
          if (most == -kInfinity)
            continue;
          for (double &weight : weights)
            sum += weight = std::exp(weight - most);
          r.lse[size_t(row)] = most + std::log(sum);
          Values gradients(size_t(s.keys));
          double dot = 0;
          for (int64_t j = 0; j < s.keys; ++j) {
            double weight = weights[size_t(j)] /= sum;
            for (int64_t x = 0; x < e; ++x) {
              r.o[size_t(row * e + x)] += weight * p.v[size_t(key(j) + x)];
              r.dv[size_t(key(j) + x)] += weight * cotangent[x];
              gradients[size_t(j)] += cotangent[x] * p.v[size_t(key(j) + x)];
            }
            dot += weight * gradients[size_t(j)];
          }
          for (int64_t j = 0; j < s.keys; ++j) {
            double score = weights[size_t(j)] * (gradients[size_t(j)] - dot) * s.scale;
            for (int64_t x = 0; x < e; ++x) {
              r.dq[size_t(row * e + x)] += score * p.k[size_t(key(j) + x)];
              r.dk[size_t(key(j) + x)] += score * q[x];
            }
          }
        }
  return r;
}

struct BFloat16 {
  BFloat16(double value) : bits(floatToBf16(float(value))) {}
  operator double() const { return bf16ToFloat(bits); }
  uint16_t bits;
};

// T: what is computed in; S: what tensors are stored as.
template <typename T, typename S = T> Results blocked(Problem p) {
  p.shape.dtype = sizeof(S) == 8 ? DType::F64 : sizeof(S) == 4 ? DType::F32 : DType::BF16;
  auto copy = [](const Values &values) { return std::vector<S>(values.begin(), values.end()); };
  // What the calls must not read is no number; what they must not write stays as it is.
  T garbage = std::numeric_limits<T>::quiet_NaN(), guard = T(12345);
  std::vector<S> q = copy(p.q), k = copy(p.k), v = copy(p.v), cotangent = copy(p.cotangent);
  std::vector<S> o(q.size(), garbage), dq(q.size(), garbage), dk(k.size(), garbage), dv(k.size(), garbage);
  std::vector<T> lse(q.size() / size_t(p.shape.headSize), garbage);
  const int64_t *querySegments = p.shape.segments ? p.querySegments.data() : nullptr;
  const int64_t *keySegments = p.shape.segments ? p.keySegments.data() : nullptr;
  for (bool backward : {false, true}) {
    std::vector<T> workspace(attentionWorkspace(p.shape, backward) + 1, garbage);
    workspace.back() = guard;
    if (backward)
      attentionGrad(p.shape, {cotangent.data(), q.data(), k.data(), v.data(), o.data(), lse.data(),
                              querySegments, keySegments, dq.data(), dk.data(), dv.data(),
                              workspace.data()});
    else
      attention(p.shape, {q.data(), k.data(), v.data(), querySegments, keySegments, o.data(),
                          lse.data(), workspace.data()});
    EXPECT_EQ(workspace.back(), guard) << "beyond the workspace of " << p.text();
  }
  auto widen = [](const auto &values) { return Values(values.begin(), values.end()); };
  return {widen(o), widen(lse), widen(dq), widen(dk), widen(dv)};
}

// The difference's norm, relative to `size`, a norm.
void expectClose(const Values &got, const Values &want, double size, double tolerance,
                 const std::string &what) {
  double difference = 0;
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (want[i] == -kInfinity) {
      ASSERT_EQ(got[i], want[i]) << what << " at " << i;
      continue;
    }
    ASSERT_TRUE(std::isfinite(got[i])) << what << " at " << i;
    difference += (got[i] - want[i]) * (got[i] - want[i]);
  }
  EXPECT_LE(std::sqrt(difference), tolerance * size) << what;
}

double norm(const Values &values) {
  double sum = 0;
  for (double value : values)
    if (value != -kInfinity)
      sum += value * value;
  return std::sqrt(sum);
}

void check(const Results &got, const Results &want, double tolerance, const std::string &what) {
  expectClose(got.o, want.o, norm(want.o), tolerance, "o of " + what);
  // A logarithm is as good as its argument, so that its error is absolute, too.
  expectClose(got.lse, want.lse, std::hypot(norm(want.lse), std::sqrt(double(want.lse.size()))),
              tolerance, "lse of " + what);
  // Where every query sees one key, the gradients of q and k are differences of equals.
  double rounding = norm(want.dv);
  expectClose(got.dq, want.dq, std::max(norm(want.dq), rounding), tolerance, "dq of " + what);
  expectClose(got.dk, want.dk, std::max(norm(want.dk), rounding), tolerance, "dk of " + what);
  expectClose(got.dv, want.dv, norm(want.dv), tolerance, "dv of " + what);
}

class Generator {
public:
  explicit Generator(uint32_t seed) : engine_(seed) {}
  int64_t integer(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }
  // Numbers that f32 holds, so that both types get the same problem.
  Values normal(int64_t elements, double size) {
    std::normal_distribution<float> distribution(0, float(size));
    Values values(static_cast<size_t>(elements));
    for (double &value : values)
      value = distribution(engine_);
    return values;
  }
  void fill(Problem &p, double size = 1) {
    p.q = normal(p.queryElements(), size);
    p.k = normal(p.keyElements(), 1);
    p.v = normal(p.keyElements(), 1);
    p.cotangent = normal(p.queryElements(), 1);
    p.shape.scale = 1 / std::sqrt(double(p.shape.headSize));
  }
  // Either documents one after the other or any ids at all, of which some meet no partner.
  void fillSegments(Problem &p) {
    bool packed = integer(0, 1), same = p.shape.queries == p.shape.keys && integer(0, 1);
    auto draw = [&](int64_t perRow) {
      std::vector<int64_t> ids;
      for (int64_t row = 0; row < p.shape.batch; ++row)
        for (int64_t i = 0, id = integer(-3, 3); i < perRow; ++i)
          ids.push_back(packed ? id += integer(0, 40) == 0 : integer(0, 5));
      return ids;
    };
    p.querySegments = draw(p.shape.queries);
    p.keySegments = same ? p.querySegments : draw(p.shape.keys);
  }
  Problem problem() {
    Problem p;
    AttentionShape &s = p.shape;
    s.batch = integer(1, 2);
    s.kvHeads = integer(1, 3);
    s.groups = integer(1, 3);
    s.headSize = integer(1, integer(0, 2) == 0 ? 128 : 40);
    s.queries = integer(1, integer(0, 3) == 0 ? 400 : 140);
    s.causal = integer(0, 1);
    s.window = integer(0, 2) == 0 ? integer(1, s.queries + 3) : 0;
    s.keys = s.causal || s.window != 0 ? s.queries : integer(1, integer(0, 3) == 0 ? 400 : 140);
    s.segments = integer(0, 2) == 0;
    fill(p);
    if (s.segments)
      fillSegments(p);
    return p;
  }

private:
  std::mt19937 engine_;
};

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
