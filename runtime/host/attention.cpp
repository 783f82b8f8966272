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

using Range = AttentionTiles::Range;

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

// T: what is computed in.
template <typename T> class Attention {
public:
  Attention(const AttentionShape &shape, const AttentionMasks &masks) : s(shape), tiles_(shape, masks) {}

protected:
  static constexpr T kNothing = -std::numeric_limits<T>::infinity();

  // Calls body() for every query head; those that share keys follow each other.
  template <typename Body> void forEachHead(Body body) {
    for (batch_ = 0; batch_ < s.batch; ++batch_)
      for (kvHead_ = 0; kvHead_ < s.kvHeads; ++kvHead_)
        for (group_ = 0; group_ < s.groups; ++group_)
          body();
  }

  // Zeroes the columns of a tile's row that lie outside `columns`.
  static void zeroAround(T *row, Range columns, Range keys) {
    std::fill(row, row + columns.begin, T(0));
    std::fill(row + columns.end, row + keys.size(), T(0));
  }

  // Zeroes the rows of a range, of any type.
  template <typename U> void clear(Rows<U> rows, Range range) const {
    for (int64_t i = range.begin; i < range.end; ++i)
      std::fill_n(rows[i], s.headSize, U{});
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

  // Memory for staged elements of tensors that are stored as U; those that are stored as T need none.
  template <typename U> T *takeStaged(T *&free, int64_t elements) const {
    if constexpr (std::is_same_v<T, U>)
      return nullptr;
    T *taken = free;
    free += elements;
    return taken;
  }

  const AttentionShape &s;
  AttentionTiles tiles_;
  const RowPasses<T> &passes = rowPasses<T>();
  int64_t batch_ = 0, kvHead_ = 0, group_ = 0;
};

// S: what q, k and v are stored as; O: o.
template <typename T, typename S = T, typename O = S> class Forward : Attention<T> {
  using Base = Attention<T>;
  using Base::kNothing, Base::passes, Base::s, Base::tiles_;

public:
  Forward(const AttentionShape &shape, const AttentionBuffers &b) : Base(shape, b.masks), b(b) {
    T *workspace = static_cast<T *>(b.workspace);
    int64_t rows = attentionQueryTile(s), columns = attentionRowSize(s);
    scores_ = {workspace, columns};
    max_ = workspace + rows * columns;
    sum_ = max_ + rows;
    T *free = sum_ + rows;
    stagedQ_ = Base::template takeStaged<S>(free, rows * s.headSize);
    stagedO_ = Base::template takeStaged<O>(free, rows * s.headSize);
    stagedK_ = Base::template takeStaged<S>(free, columns * s.headSize);
    stagedV_ = Base::template takeStaged<S>(free, columns * s.headSize);
  }

  // Returns how many tiles of scores it computed.
  int64_t run() {
    this->forEachHead([&] {
      auto q = this->queryRows(static_cast<const S *>(b.q));
      auto k = this->keyRows(static_cast<const S *>(b.k));
      auto v = this->keyRows(static_cast<const S *>(b.v));
      auto o = this->queryRows(static_cast<O *>(b.o));
      tiles_.forEachQueryTile([&](Range queries) {
        if (!tiles_.select(queries)) {
          this->clear(o, queries);
          for (int64_t i = queries.begin; i < queries.end; ++i)
            lse(i) = kNothing;
          return;
        }
        std::fill_n(max_, queries.size(), kNothing);
        std::fill_n(sum_, queries.size(), T(0));
        Rows<const T> tileQ = stage(q, queries, s.headSize, stagedQ_);
        o_ = open(o, queries, s.headSize, stagedO_);
        bool first = true;
        tiles_.forEachKeyTile(this->batch_, [&](Range keys) {
          this->score(queries, keys, tileQ, stage(k, keys, s.headSize, stagedK_), scores_);
          for (int64_t row = 0; row < queries.size(); ++row)
            weigh(row, keys, first);
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
    return tiles_.count();
  }

private:
  T &lse(int64_t i) const { return this->perQuery(static_cast<T *>(b.lse), i); }

  // Turns the scores of the `row`-th query of the tile into weights relative to the largest score so far, and what was
  // summed before likewise.
  void weigh(int64_t row, Range keys, bool first) {
    T *scores = scores_[row];
    Range columns = tiles_.visibleColumns(row, keys);
    tiles_.maskRow(scores, row, keys, columns);
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
    lse(i) = nothing ? kNothing : max_[row] + std::log(sum_[row]);
  }

  const AttentionBuffers &b;
  Rows<T> scores_;
  T *max_, *sum_; // per row of the tile
  T *stagedQ_, *stagedO_, *stagedK_, *stagedV_;
  Rows<T> o_; // of the tile
};

// S: what q, k and v are stored as; O: o and its cotangent; G: dq, dk and dv.
template <typename T, typename S = T, typename O = S, typename G = S> class Backward : Attention<T> {
  using Base = Attention<T>;
  using Base::kNothing, Base::passes, Base::s, Base::tiles_;

public:
  Backward(const AttentionShape &shape, const AttentionGradBuffers &b) : Base(shape, b.masks), b(b) {
    T *workspace = static_cast<T *>(b.workspace);
    int64_t rows = attentionQueryTile(s), columns = attentionRowSize(s);
    weights_ = {workspace, columns};
    gradient_ = {workspace + rows * columns, columns};
    dot_ = workspace + 2 * rows * columns;
    T *free = dot_ + rows;
    stagedQ_ = Base::template takeStaged<S>(free, rows * s.headSize);
    for (T **staged : {&stagedO_, &stagedDo_})
      *staged = Base::template takeStaged<O>(free, rows * s.headSize);
    stagedDq_ = Base::template takeStaged<G>(free, rows * s.headSize);
    for (T **staged : {&stagedK_, &stagedV_})
      *staged = Base::template takeStaged<S>(free, columns * s.headSize);
    for (T **staged : {&stagedDk_, &stagedDv_})
      *staged = Base::template takeStaged<G>(free, s.keys * s.headSize);
  }

  // Returns how many tiles of scores it computed.
  int64_t run() {
    Range allKeys{0, s.keys};
    this->forEachHead([&] {
      auto q = this->queryRows(static_cast<const S *>(b.q));
      k_ = this->keyRows(static_cast<const S *>(b.k));
      v_ = this->keyRows(static_cast<const S *>(b.v));
      auto o = this->queryRows(static_cast<const O *>(b.o));
      auto cotangent = this->queryRows(static_cast<const O *>(b.cotangent));
      auto dq = this->queryRows(static_cast<G *>(b.dq));
      auto dk = this->keyRows(static_cast<G *>(b.dk)), dv = this->keyRows(static_cast<G *>(b.dv));
      // Query heads and tiles add up in these.
      dk_ = open(dk, allKeys, s.headSize, stagedDk_);
      dv_ = open(dv, allKeys, s.headSize, stagedDv_);
      if (this->group_ == 0) {
        this->clear(dk_, allKeys);
        this->clear(dv_, allKeys);
      }
      tiles_.forEachQueryTile([&](Range queries) {
        if (!tiles_.select(queries))
          return this->clear(dq, queries);
        q_ = stage(q, queries, s.headSize, stagedQ_);
        do_ = stage(cotangent, queries, s.headSize, stagedDo_);
        dq_ = open(dq, queries, s.headSize, stagedDq_);
        this->clear(dq_, {0, queries.size()});
        Rows<const T> tileO = stage(o, queries, s.headSize, stagedO_);
        for (int64_t row = 0; row < queries.size(); ++row)
          dot_[row] = passes.dot(do_[row], tileO[row], s.headSize);
        tiles_.forEachKeyTile(this->batch_, [&](Range keys) { runTile(queries, keys); });
        store(dq_, dq, queries, s.headSize);
      });
      if (this->group_ == s.groups - 1) {
        store(dk_, dk, allKeys, s.headSize);
        store(dv_, dv, allKeys, s.headSize);
      }
    });
    return tiles_.count();
  }

private:
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
    for (int64_t row = 0; row < queries.size(); ++row) {
      Range columns = tiles_.visibleColumns(row, keys);
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
    Range columns = tiles_.visibleColumns(row, keys);
    if (lse == kNothing)
      columns = {0, 0}; // it sees nothing
    tiles_.maskRow(scores, row, keys, columns);
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

int64_t attention(const AttentionShape &shape, const AttentionBuffers &buffers) {
  if (shape.dtype == DType::F64)
    return Forward<double>(shape, buffers).run();
  if (shape.dtype == DType::F32)
    return Forward<float>(shape, buffers).run();
  return shape.wideO ? Forward<float, BFloat16, float>(shape, buffers).run()
                     : Forward<float, BFloat16>(shape, buffers).run();
}

int64_t attentionGrad(const AttentionShape &shape, const AttentionGradBuffers &buffers) {
  using B = BFloat16;
  if (shape.dtype == DType::F64)
    return Backward<double>(shape, buffers).run();
  if (shape.dtype == DType::F32)
    return Backward<float>(shape, buffers).run();
  if (shape.wideO)
    return shape.wideGrads ? Backward<float, B, float, float>(shape, buffers).run()
                           : Backward<float, B, float>(shape, buffers).run();
  return shape.wideGrads ? Backward<float, B, B, float>(shape, buffers).run()
                         : Backward<float, B>(shape, buffers).run();
}

namespace {

// The masks of a row whose other inputs are the first `inputs` of its buffers, and the buffers behind them.
struct MasksOfRow {
  MasksOfRow(const AttentionShape &shape, std::span<void *const> buffers, size_t inputs)
      : rest(buffers.subspan(inputs)) {
    if (shape.segments)
      take(masks.querySegments, masks.keySegments);
    if (shape.positions)
      take(masks.queryPositions, masks.keyPositions);
  }
  AttentionMasks masks;
  std::span<void *const> rest;

private:
  void take(const int64_t *&ofQueries, const int64_t *&ofKeys) {
    ofQueries = static_cast<const int64_t *>(rest[0]);
    ofKeys = static_cast<const int64_t *>(rest[1]);
    rest = rest.subspan(2);
  }
};

template <typename Buffers, int64_t (*compute)(const AttentionShape &, const Buffers &)>
struct AttentionCall : LibraryCall {
  AttentionCall(const AttentionShape &shape, const Buffers &buffers) : shape(shape), buffers(buffers) {}
  void run() override { tiles += uint64_t(compute(shape, buffers)); }
  uint64_t attentionTiles() const override { return tiles; }
  AttentionShape shape;
  Buffers buffers;
  uint64_t tiles = 0;
};

} // namespace

std::unique_ptr<LibraryCall> bindAttention(const AttentionShape &shape, std::span<void *const> b) {
  MasksOfRow row(shape, b, 3);
  std::span<void *const> out = row.rest;
  return std::make_unique<AttentionCall<AttentionBuffers, attention>>(
      shape, AttentionBuffers{b[0], b[1], b[2], row.masks, out[0], out[1], out[2]});
}

std::unique_ptr<LibraryCall> bindAttentionGrad(const AttentionShape &shape, std::span<void *const> b) {
  MasksOfRow row(shape, b, 6);
  std::span<void *const> out = row.rest;
  return std::make_unique<AttentionCall<AttentionGradBuffers, attentionGrad>>(
      shape, AttentionGradBuffers{b[0], b[1], b[2], b[3], b[4], b[5], row.masks, out[0], out[1], out[2], out[3]});
}

} // namespace shoal::rt
