// What tests of attention compare with: a dense computation in f64, and problems of random shapes and masks.
#ifndef SHOAL_UNITTESTS_RUNTIME_DENSEATTENTION_H
#define SHOAL_UNITTESTS_RUNTIME_DENSEATTENTION_H

#include "core/element.h"
#include "host/attention.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt::test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

struct Problem {
  AttentionShape shape{};
  Values q, k, v, cotangent;
  std::vector<int64_t> querySegments, keySegments, queryPositions, keyPositions;

  AttentionMasks masks() const {
    AttentionMasks masks;
    if (shape.segments)
      masks.querySegments = querySegments.data(), masks.keySegments = keySegments.data();
    if (shape.positions)
      masks.queryPositions = queryPositions.data(), masks.keyPositions = keyPositions.data();
    return masks;
  }
  int64_t queryElements() const { return shape.batch * shape.queries * shape.kvHeads * shape.groups * shape.headSize; }
  int64_t keyElements() const { return shape.batch * shape.keys * shape.kvHeads * shape.headSize; }
  std::string text() const {
    std::ostringstream out;
    out << shape.batch << " rows, " << shape.queries << " queries, " << shape.keys << " keys, " << shape.kvHeads
        << " x " << shape.groups << " heads of " << shape.headSize << ", causal " << shape.causal << ", window "
        << shape.window << ", segments " << shape.segments << ", positions " << shape.positions;
    return out.str();
  }
};

struct Results {
  Values o, lse, dq, dk, dv;
};

inline bool isVisible(const Problem &p, int64_t batch, int64_t i, int64_t j) {
  const AttentionShape &s = p.shape;
  if (s.segments && p.querySegments[size_t(batch * s.queries + i)] != p.keySegments[size_t(batch * s.keys + j)])
    return false;
  if (s.positions) {
    i = p.queryPositions[size_t(i)];
    j = p.keyPositions[size_t(j)];
    if (i < 0 || j < 0)
      return false;
  }
  return !(s.causal && j > i) && !(s.window != 0 && (i - j >= s.window || j - i >= s.window));
}

// By the definition, one query at a time.
inline Results dense(const Problem &p) {
  const AttentionShape &s = p.shape;
  int64_t e = s.headSize;
  Results r{Values(p.q.size()), Values(p.q.size() / size_t(e)), Values(p.q.size()), Values(p.k.size()),
            Values(p.k.size())};
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

// T: what is computed in; S: what q, k and v are stored as; O: o and its cotangent; G: dq, dk and dv.
template <typename T, typename S = T, typename O = S, typename G = S> Results blocked(Problem p) {
  p.shape.dtype = sizeof(S) == 8 ? DType::F64 : sizeof(S) == 4 ? DType::F32 : DType::BF16;
  p.shape.wideO = !std::is_same_v<O, S>;
  p.shape.wideGrads = !std::is_same_v<G, S>;
  // What the calls must not read is no number; what they must not write stays as it is.
  T garbage = std::numeric_limits<T>::quiet_NaN(), guard = T(12345);
  std::vector<S> q(p.q.begin(), p.q.end()), k(p.k.begin(), p.k.end()), v(p.v.begin(), p.v.end());
  std::vector<O> cotangent(p.cotangent.begin(), p.cotangent.end()), o(q.size(), O(garbage));
  std::vector<G> dq(q.size(), G(garbage)), dk(k.size(), G(garbage)), dv(k.size(), G(garbage));
  std::vector<T> lse(q.size() / size_t(p.shape.headSize), garbage);
  AttentionMasks masks = p.masks();
  for (bool backward : {false, true}) {
    std::vector<T> workspace(attentionWorkspace(p.shape, backward) + 1, garbage);
    workspace.back() = guard;
    int64_t tiles =
        backward ? attentionGrad(p.shape, {cotangent.data(), q.data(), k.data(), v.data(), o.data(), lse.data(), masks,
                                           dq.data(), dk.data(), dv.data(), workspace.data()})
                 : attention(p.shape, {q.data(), k.data(), v.data(), masks, o.data(), lse.data(), workspace.data()});
    EXPECT_EQ(tiles, attentionTiles(p.shape, masks)) << p.text();
    EXPECT_EQ(workspace.back(), guard) << "beyond the workspace of " << p.text();
  }
  auto widen = [](const auto &values) { return Values(values.begin(), values.end()); };
  return {widen(o), widen(lse), widen(dq), widen(dk), widen(dv)};
}

// The difference's norm, relative to `size`, a norm.
inline void expectClose(const Values &got, const Values &want, double size, double tolerance, const std::string &what) {
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

inline double norm(const Values &values) {
  double sum = 0;
  for (double value : values)
    if (value != -kInfinity)
      sum += value * value;
  return std::sqrt(sum);
}

inline void check(const Results &got, const Results &want, double tolerance, const std::string &what) {
  expectClose(got.o, want.o, norm(want.o), tolerance, "o of " + what);
  // A logarithm is as good as its argument, so that its error is absolute, too.
  expectClose(got.lse, want.lse, std::hypot(norm(want.lse), std::sqrt(double(want.lse.size()))), tolerance,
              "lse of " + what);
  // Where every query sees one key, the gradients of q and k are differences of equals.
  double rounding = norm(want.dv);
  expectClose(got.dq, want.dq, std::max(norm(want.dq), rounding), tolerance, "dq of " + what);
  expectClose(got.dk, want.dk, std::max(norm(want.dk), rounding), tolerance, "dk of " + what);
  expectClose(got.dv, want.dv, norm(want.dv), tolerance, "dv of " + what);
}

class Generator {
public:
  explicit Generator(uint32_t seed) : engine_(seed) {}
  int64_t integer(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(engine_); }
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

  // Places of rows in a sequence: in order or not, some of them left out, some rows that do not exist.
  std::vector<int64_t> positions(int64_t rows) {
    std::vector<int64_t> places(static_cast<size_t>(rows));
    std::iota(places.begin(), places.end(), integer(0, 40));
    switch (integer(0, 4)) {
    case 0: // a part that follows another one
      break;
    case 1: { // two parts, as zigzag stores them
      int64_t gap = integer(0, 200), first = integer(0, rows);
      for (int64_t i = first; i < rows; ++i)
        places[size_t(i)] += gap;
      break;
    }
    case 2: // every row somewhere behind the last one, now and then at the same place
      for (int64_t i = 1; i < rows; ++i)
        places[size_t(i)] = places[size_t(i - 1)] + integer(0, 3);
      break;
    case 3:
      std::reverse(places.begin(), places.end());
      break;
    case 4:
      std::shuffle(places.begin(), places.end(), engine_);
    }
    switch (integer(0, 2)) {
    case 0: // padding behind the rows
      std::fill(places.end() - integer(0, rows), places.end(), -1);
      break;
    case 1:
      for (int64_t &place : places)
        place = integer(0, 3) == 0 ? -integer(1, 50) : place;
    }
    return places;
  }
  // A problem with positions, of which one in ten also has a tile that does not exist.
  Problem positioned() {
    Problem p = problem();
    p.shape.positions = true;
    p.shape.keys = integer(1, integer(0, 3) == 0 ? 700 : 140);
    fill(p);
    p.queryPositions = positions(p.shape.queries);
    p.keyPositions = positions(p.shape.keys);
    if (p.shape.segments)
      fillSegments(p);
    if (integer(0, 9) == 0)
      std::fill_n(p.keyPositions.begin() + p.shape.keys / 4, p.shape.keys / 2, -1);
    return p;
  }

private:
  std::mt19937 engine_;
};

} // namespace shoal::rt::test

#endif // SHOAL_UNITTESTS_RUNTIME_DENSEATTENTION_H
