// Per batch row, key/value head and query head: tiles of queries against tiles of keys. The
// products of a tile go to the libraries, what lies between them to the row passes. Tensors of bf16 are widened a
// tile at a time, and what is written is rounded once.
#include "core/element.h"
#include "host/attention.h"
#include "host/gemm.h"
#include "host/row_passes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::rt {
namespace {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// What the masks without segments let query i see: one range of keys.
Range visibleKeys(const AttentionShape &s, int64_t i) {
  int64_t begin = s.window != 0 ? std::max<int64_t>(0, i - s.window + 1) : 0;
  int64_t end = s.causal ? i + 1 : s.window != 0 ? std::min(s.keys, i + s.window) : s.keys;
  return {begin, end};
}

Range extremes(const int64_t *values, Range range) {
  auto [least, most] = std::minmax_element(values + range.begin, values + range.end);
  return {*least, *most};
}

// The queries of one head of one batch row, or its keys: `size` rows of headSize elements.
template <typename T> struct Rows {
  T *first;
  int64_t stride; // elements
  T *operator[](int64_t i) const { return first + i * stride; }
};

struct BFloat16 {
  uint16_t bits;
};

// Rows of `size` elements, as they are in memory or widened into `staged`.
template <typename T>
Rows<const T> stage(Rows<const T> rows, Range range, int64_t, T *) {
  return {rows[range.begin], rows.stride};
}
Rows<const float> stage(Rows<const BFloat16> rows, Range range, int64_t size, float *staged) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    const BFloat16 *row = rows[i];
    float *wide = staged + (i - range.begin) * size;
    for (int64_t x = 0; x < size; ++x)
      wide[x] = bf16ToFloat(row[x].bits);
  }
  return {staged, size};
}

// Where rows are computed: in place, or in `staged` until they are stored.
template <typename T> Rows<T> open(Rows<T> rows, Range range, int64_t, T *) {
  return {rows[range.begin], rows.stride};
}
Rows<float> open(Rows<BFloat16>, Range, int64_t size, float *staged) { return {staged, size}; }

template <typename T> void store(Rows<T>, Rows<T>, Range, int64_t) {}
void store(Rows<float> from, Rows<BFloat16> to, Range range, int64_t size) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    const float *wide = from[i - range.begin];
    BFloat16 *row = to[i];
    for (int64_t x = 0; x < size; ++x)
      row[x].bits = floatToBf16(wide[x]);
  }
}

// T: what is computed in; S: what tensors are stored as.
template <typename T, typename S> class Attention {
public:
  Attention(const AttentionShape &shape, const int64_t *querySegments, const int64_t *keySegments)
      : s(shape), querySegments(querySegments), keySegments(keySegments) {}

protected:
  // Calls body() for every query head; those that share keys follow each other.
  template <typename Body> void forEachHead(Body body) {
    for (batch_ = 0; batch_ < s.batch; ++batch_)
      for (kvHead_ = 0; kvHead_ < s.kvHeads; ++kvHead_)
        for (group_ = 0; group_ < s.groups; ++group_)
          body();
  }

  // Calls body(queries) for every tile of queries.
  template <typename Body> void forEachQueryTile(Body body) const {
    int64_t size = attentionQueryTile(s);
    for (int64_t i = 0; i < s.queries; i += size)
      body(Range{i, std::min(i + size, s.queries)});
  }

  // Calls body(keys) for the tiles of keys of which `queries` may see any.
  template <typename Body> void forEachKeyTile(Range queries, Body body) {
    Range seen{visibleKeys(s, queries.begin).begin, visibleKeys(s, queries.end - 1).end};
    // At most the tile of all keys, which the workspace is made for.
    int64_t size = std::min(tileSize(seen.size(), kAttentionKeyTile), attentionRowSize(s));
    if (!s.segments) {
      for (int64_t j = seen.begin; j < seen.end; j += size)
        body(Range{j, std::min(j + size, seen.end)});
      return;
    }
    Range querySegment = extremes(querySegments + batch_ * s.queries, queries);
    for (int64_t j = seen.begin; j < seen.end; j += size) {
      Range keys{j, std::min(j + size, seen.end)};
      Range keySegment = extremes(keySegments + batch_ * s.keys, keys);
      if (querySegment.end < keySegment.begin || keySegment.end < querySegment.begin)
        continue;
      oneSegment_ = querySegment.size() == 0 && keySegment.size() == 0;
      body(keys);
    }
  }

  // Keys of the tile, counted from its first, that query i may see, if they are of its segment.
  Range visibleColumns(int64_t i, Range keys) const {
    Range seen = visibleKeys(s, i);
    int64_t begin = std::clamp(seen.begin, keys.begin, keys.end);
    return {begin - keys.begin, std::clamp(seen.end, begin, keys.end) - keys.begin};
  }

  // Masks the scores of query i with keys of other segments.
  void maskSegments(T *row, int64_t i, Range keys, Range columns) const {
    if (!s.segments || oneSegment_)
      return;
    int64_t own = querySegments[batch_ * s.queries + i];
    const int64_t *others = keySegments + batch_ * s.keys + keys.begin;
    for (int64_t j = columns.begin; j < columns.end; ++j)
      row[j] = others[j] == own ? row[j] : -std::numeric_limits<T>::infinity();
  }

  // Zeroes the columns of a tile's row that lie outside `columns`.
  static void zeroAround(T *row, Range columns, Range keys) {
    std::fill(row, row + columns.begin, T(0));
    std::fill(row + columns.end, row + keys.size(), T(0));
  }

  template <typename U> Rows<U> queryRows(U *tensor) const {
    int64_t head = kvHead_ * s.groups + group_, heads = s.kvHeads * s.groups;
    return {tensor + (batch_ * s.queries * heads + head) * s.headSize, heads * s.headSize};
  }
  template <typename U> Rows<U> keyRows(U *tensor) const {
    return {tensor + (batch_ * s.keys * s.kvHeads + kvHead_) * s.headSize, s.kvHeads * s.headSize};
  }
  // One number per query.
  template <typename U> U &perQuery(U *tensor, int64_t i) const {
    return tensor[((batch_ * s.queries + i) * s.kvHeads + kvHead_) * s.groups + group_];
  }

  // scores = scale * q k^T, of tiles
  void score(Range queries, Range keys, Rows<const T> q, Rows<const T> k, Rows<T> scores) const {
    blockGemm(false, true, queries.size(), keys.size(), s.headSize, T(s.scale), q.first, q.stride,
              k.first, k.stride, T(0), scores.first, scores.stride);
  }

  // Memory for staged elements of type T; none is needed where tensors are stored as T.
  T *takeStaged(T *&free, int64_t elements) const {
    if constexpr (std::is_same_v<T, S>)
      return nullptr;
    T *taken = free;
    free += elements;
    return taken;
  }

  const AttentionShape &s;
  const int64_t *const querySegments, *const keySegments;
  const RowPasses<T> &passes = rowPasses<T>();
  int64_t batch_ = 0, kvHead_ = 0, group_ = 0;
  bool oneSegment_ = false; // the tile's queries and keys
};

template <typename T, typename S = T> class Forward : Attention<T, S> {
  using Base = Attention<T, S>;
  using Base::passes, Base::s;
  static constexpr T kNothing = -std::numeric_limits<T>::infinity();

public:
  Forward(const AttentionShape &shape, const AttentionBuffers &b)
      : Base(shape, b.querySegments, b.keySegments), b(b) {
    T *workspace = static_cast<T *>(b.workspace);
    int64_t rows = attentionQueryTile(s), columns = attentionRowSize(s);
    scores_ = {workspace, columns};
    max_ = workspace + rows * columns;
    sum_ = max_ + rows;
    T *free = sum_ + rows;
    stagedQ_ = this->takeStaged(free, rows * s.headSize);
    stagedO_ = this->takeStaged(free, rows * s.headSize);
    stagedK_ = this->takeStaged(free, columns * s.headSize);
    stagedV_ = this->takeStaged(free, columns * s.headSize);
  }

  void run() {
    this->forEachHead([&] {
      auto q = this->queryRows(static_cast<const S *>(b.q));
      auto k = this->keyRows(static_cast<const S *>(b.k));
      auto v = this->keyRows(static_cast<const S *>(b.v));
      auto o = this->queryRows(static_cast<S *>(b.o));
      this->forEachQueryTile([&](Range queries) {
        std::fill_n(max_, queries.size(), kNothing);
        std::fill_n(sum_, queries.size(), T(0));
        Rows<const T> tileQ = stage(q, queries, s.headSize, stagedQ_);
        o_ = open(o, queries, s.headSize, stagedO_);
        bool first = true;
        this->forEachKeyTile(queries, [&](Range keys) {
          this->score(queries, keys, tileQ, stage(k, keys, s.headSize, stagedK_), scores_);
          for (int64_t i = queries.begin; i < queries.end; ++i)
            weigh(i, i - queries.begin, keys, first);
          Rows<const T> tileV = stage(v, keys, s.headSize, stagedV_);
          blockGemm(false, false, queries.size(), s.headSize, keys.size(), T(1), scores_.first,
                    scores_.stride, tileV.first, tileV.stride, T(first ? 0 : 1), o_.first,
                    o_.stride);
          first = false;
        });
        for (int64_t i = queries.begin; i < queries.end; ++i)
          finish(i, i - queries.begin);
        store(o_, o, queries, s.headSize);
      });
    });
  }

private:
  // Turns the scores of query i, the `row`-th of the tile, into weights relative to the largest
  // score so far, and what was summed before likewise.
  void weigh(int64_t i, int64_t row, Range keys, bool first) {
    T *scores = scores_[row];
    Range columns = this->visibleColumns(i, keys);
    this->maskSegments(scores, i, keys, columns);
    T most = std::max(max_[row], passes.max(scores + columns.begin, columns.size()));
    T shift = most == kNothing ? T(0) : most;
    T sum = passes.expAndSum(scores + columns.begin, columns.size(), shift);
    this->zeroAround(scores, columns, keys);
    if (first || max_[row] == most) {
      sum_[row] += sum;
    } else {
      T factor = std::exp(max_[row] - shift);
      sum_[row] = sum_[row] * factor + sum;
      passes.scale(o_[row], s.headSize, factor);
    }
    max_[row] = most;
  }

  void finish(int64_t i, int64_t row) {
    bool nothing = sum_[row] == 0;
    if (nothing)
      std::fill_n(o_[row], s.headSize, T(0));
    else
      passes.scale(o_[row], s.headSize, 1 / sum_[row]);
    this->perQuery(static_cast<T *>(b.lse), i) =
        nothing ? kNothing : max_[row] + std::log(sum_[row]);
  }

  const AttentionBuffers &b;
  Rows<T> scores_;
  T *max_, *sum_; // per row of the tile
  T *stagedQ_, *stagedO_, *stagedK_, *stagedV_;
  Rows<T> o_; // of the tile
};

template <typename T, typename S = T> class Backward : Attention<T, S> {
  using Base = Attention<T, S>;
  using Base::passes, Base::s;

public:
  Backward(const AttentionShape &shape, const AttentionGradBuffers &b)
      : Base(shape, b.querySegments, b.keySegments), b(b) {
    T *workspace = static_cast<T *>(b.workspace);
    int64_t rows = attentionQueryTile(s), columns = attentionRowSize(s);
    weights_ = {workspace, columns};
    gradient_ = {workspace + rows * columns, columns};
    dot_ = workspace + 2 * rows * columns;
    T *free = dot_ + rows;
    for (T **staged : {&stagedQ_, &stagedO_, &stagedDo_, &stagedDq_})
      *staged = this->takeStaged(free, rows * s.headSize);
    for (T **staged : {&stagedK_, &stagedV_})
      *staged = this->takeStaged(free, columns * s.headSize);
    for (T **staged : {&stagedDk_, &stagedDv_})
      *staged = this->takeStaged(free, s.keys * s.headSize);
  }

  void run() {
    Range allKeys{0, s.keys};
    this->forEachHead([&] {
      auto q = this->queryRows(static_cast<const S *>(b.q));
      k_ = this->keyRows(static_cast<const S *>(b.k));
      v_ = this->keyRows(static_cast<const S *>(b.v));
      auto o = this->queryRows(static_cast<const S *>(b.o));
      auto cotangent = this->queryRows(static_cast<const S *>(b.cotangent));
      auto dq = this->queryRows(static_cast<S *>(b.dq));
      auto dk = this->keyRows(static_cast<S *>(b.dk)), dv = this->keyRows(static_cast<S *>(b.dv));
      // Query heads and tiles add up in these.
      dk_ = open(dk, allKeys, s.headSize, stagedDk_);
      dv_ = open(dv, allKeys, s.headSize, stagedDv_);
      if (this->group_ == 0) {
        clear(dk_, s.keys);
        clear(dv_, s.keys);
      }
      this->forEachQueryTile([&](Range queries) {
        q_ = stage(q, queries, s.headSize, stagedQ_);
        do_ = stage(cotangent, queries, s.headSize, stagedDo_);
        dq_ = open(dq, queries, s.headSize, stagedDq_);
        clear(dq_, queries.size());
        Rows<const T> tileO = stage(o, queries, s.headSize, stagedO_);
        for (int64_t row = 0; row < queries.size(); ++row)
          dot_[row] = passes.dot(do_[row], tileO[row], s.headSize);
        this->forEachKeyTile(queries, [&](Range keys) { runTile(queries, keys); });
        store(dq_, dq, queries, s.headSize);
      });
      if (this->group_ == s.groups - 1) {
        store(dk_, dk, allKeys, s.headSize);
        store(dv_, dv, allKeys, s.headSize);
      }
    });
  }

private:
  void clear(Rows<T> rows, int64_t count) const {
    for (int64_t i = 0; i < count; ++i)
      std::fill_n(rows[i], s.headSize, T(0));
  }

  void runTile(Range queries, Range keys) {
    int64_t m = queries.size(), n = keys.size(), e = s.headSize;
    Rows<const T> tileK = stage(k_, keys, e, stagedK_), tileV = stage(v_, keys, e, stagedV_);
    this->score(queries, keys, q_, tileK, weights_);
    for (int64_t i = queries.begin; i < queries.end; ++i)
      weigh(i, i - queries.begin, keys);
    const T *q = q_.first, *k = tileK.first, *v = tileV.first;
    const T *cotangent = do_.first, *weights = weights_.first;
    // dv += weights^T do, and the weights' gradient do v^T
    blockGemm(true, false, n, e, m, T(1), weights, weights_.stride, cotangent, do_.stride, T(1),
              dv_[keys.begin], dv_.stride);
    blockGemm(false, true, m, n, e, T(1), cotangent, do_.stride, v, tileV.stride, T(0),
              gradient_.first, gradient_.stride);
    // The softmax's gradient, and through the scale to q and k.
    for (int64_t i = queries.begin; i < queries.end; ++i) {
      int64_t row = i - queries.begin;
      Range columns = this->visibleColumns(i, keys);
      passes.subtractAndWeigh(gradient_[row] + columns.begin, weights_[row] + columns.begin,
                              columns.size(), dot_[row]);
      this->zeroAround(gradient_[row], columns, keys);
    }
    blockGemm(false, false, m, e, n, T(s.scale), gradient_.first, gradient_.stride, k, tileK.stride,
              T(1), dq_.first, dq_.stride);
    blockGemm(true, false, n, e, m, T(s.scale), gradient_.first, gradient_.stride, q, q_.stride,
              T(1), dk_[keys.begin], dk_.stride);
  }

  // Turns the scores of query i, the `row`-th of the tile, into its weights.
  void weigh(int64_t i, int64_t row, Range keys) {
    T *scores = weights_[row];
    T lse = this->perQuery(static_cast<const T *>(b.lse), i);
    Range columns = this->visibleColumns(i, keys);
    if (lse == -std::numeric_limits<T>::infinity())
      columns = {0, 0}; // it sees nothing
    this->maskSegments(scores, i, keys, columns);
    passes.expAndSum(scores + columns.begin, columns.size(), lse);
    this->zeroAround(scores, columns, keys);
  }

  const AttentionGradBuffers &b;
  Rows<T> weights_, gradient_;
  T *dot_; // sum of do * o, per row of the tile
  T *stagedQ_, *stagedO_, *stagedDo_, *stagedDq_, *stagedK_, *stagedV_, *stagedDk_, *stagedDv_;
  Rows<const S> k_, v_;   // of the head
  Rows<const T> q_, do_;  // of the tile of queries
  Rows<T> dq_, dk_, dv_;  // of that tile, and of the head
};

} // namespace

void attention(const AttentionShape &shape, const AttentionBuffers &buffers) {
  if (shape.dtype == DType::F64)
    Forward<double>(shape, buffers).run();
  else if (shape.dtype == DType::BF16)
    Forward<float, BFloat16>(shape, buffers).run();
  else
    Forward<float>(shape, buffers).run();
}

void attentionGrad(const AttentionShape &shape, const AttentionGradBuffers &buffers) {
  if (shape.dtype == DType::F64)
    Backward<double>(shape, buffers).run();
  else if (shape.dtype == DType::BF16)
    Backward<float, BFloat16>(shape, buffers).run();
  else
    Backward<float>(shape, buffers).run();
}

std::unique_ptr<LibraryCall> bindAttention(const AttentionShape &shape, std::span<void *const> b) {
  struct Call : LibraryCall {
    void run() override { attention(shape, buffers); }
    AttentionShape shape;
    AttentionBuffers buffers;
  };
  auto outputs = b.subspan(shape.segments ? 5 : 3);
  auto call = std::make_unique<Call>();
  call->shape = shape;
  call->buffers = {b[0],
                   b[1],
                   b[2],
                   shape.segments ? static_cast<int64_t *>(b[3]) : nullptr,
                   shape.segments ? static_cast<int64_t *>(b[4]) : nullptr,
                   outputs[0],
                   outputs[1],
                   outputs[2]};
  return call;
}

std::unique_ptr<LibraryCall> bindAttentionGrad(const AttentionShape &shape,
                                               std::span<void *const> b) {
  struct Call : LibraryCall {
    void run() override { attentionGrad(shape, buffers); }
    AttentionShape shape;
    AttentionGradBuffers buffers;
  };
  auto outputs = b.subspan(shape.segments ? 8 : 6);
  auto call = std::make_unique<Call>();
  call->shape = shape;
  call->buffers = {b[0],
                   b[1],
                   b[2],
                   b[3],
                   b[4],
                   b[5],
                   shape.segments ? static_cast<int64_t *>(b[6]) : nullptr,
                   shape.segments ? static_cast<int64_t *>(b[7]) : nullptr,
                   outputs[0],
                   outputs[1],
                   outputs[2],
                   outputs[3]};
  return call;
}

} // namespace shoal::rt
