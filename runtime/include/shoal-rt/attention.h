// What an attention call computes, and the workspace it needs: the compiler allocates by the
// formula that the runtime computes with. Shapes, row-major: queries and outputs
// [batch, queries, kvHeads, groups, headSize], keys and values [batch, keys, kvHeads, headSize],
// log-sum-exps [batch, queries, kvHeads, groups], segments [batch, queries] and [batch, keys], positions [queries] and
// [keys].
#ifndef SHOAL_RT_ATTENTION_H
#define SHOAL_RT_ATTENTION_H

#include "shoal-rt/traffic.h"

#include <array>
#include <bit>

namespace shoal::rt {

struct AttentionShape {
  int64_t batch, queries, keys, kvHeads, groups, headSize;
  bool causal;    // query i sees keys j <= i
  int64_t window; // it sees those with |i - j| < window; 0: all
  bool segments;  // it sees those of its own segment
  double scale;   // of the scores
  DType dtype;    // F32, F64 or BF16: of q, k and v
  // i and j above are the positions of the rows instead of their numbers; a row with a negative one does not exist: a
  // key that no query sees, a query that sees none.
  bool positions = false;
  // Of the type that is computed in, where others have `dtype`: o and its cotangent; dq, dk and dv.
  bool wideO = false, wideGrads = false;
};

// What is computed in, which log-sum-exps and the workspace have: f32 for bf16, which is widened a tile at a time.
constexpr DType attentionComputeType(const AttentionShape &shape) {
  return shape.dtype == DType::BF16 ? DType::F32 : shape.dtype;
}

// What o and its cotangent have, and dq, dk and dv.
constexpr DType attentionOType(const AttentionShape &shape) {
  return shape.wideO ? attentionComputeType(shape) : shape.dtype;
}
constexpr DType attentionGradType(const AttentionShape &shape) {
  return shape.wideGrads ? attentionComputeType(shape) : shape.dtype;
}

// The numbers of an Attention or AttentionGrad row. Its operands are q, k, v, o, lse, workspace; the
// gradient's are the cotangent of o, q, k, v, o, lse, dq, dk, dv, workspace. Segments of queries and
// of keys, and then positions of both, i64, stand behind the other inputs if there are any.
enum AttentionParam : uint32_t {
  kAttentionBatch, kAttentionQueries, kAttentionKeys, kAttentionKvHeads, kAttentionGroups,
  kAttentionHeadSize, kAttentionCausal, kAttentionWindow, kAttentionSegments,
  kAttentionScale, // the bits of a double
  kAttentionDType, kAttentionPositions, kAttentionWideO, kAttentionWideGrads, kAttentionNumParams,
};

constexpr std::array<int64_t, kAttentionNumParams> attentionParams(const AttentionShape &s) {
  return {s.batch, s.queries, s.keys, s.kvHeads, s.groups, s.headSize, s.causal, s.window,
          s.segments, std::bit_cast<int64_t>(s.scale), int64_t(s.dtype), s.positions, s.wideO, s.wideGrads};
}

// The other way round. `p` holds kAttentionNumParams numbers.
constexpr AttentionShape attentionShape(const int64_t *p) {
  return {p[kAttentionBatch], p[kAttentionQueries], p[kAttentionKeys], p[kAttentionKvHeads],
          p[kAttentionGroups], p[kAttentionHeadSize], p[kAttentionCausal] != 0,
          p[kAttentionWindow], p[kAttentionSegments] != 0,
          std::bit_cast<double>(p[kAttentionScale]), DType(p[kAttentionDType]), p[kAttentionPositions] != 0,
          p[kAttentionWideO] != 0, p[kAttentionWideGrads] != 0};
}

// Keys of a tile of scores: both tiles of the backward pass and what they are made from stay near a
// level-2 cache.
inline constexpr int64_t kAttentionKeyTile = 256;

// The size of equal tiles (the last may be smaller), none larger than `most`, that cover `size`.
constexpr int64_t tileSize(int64_t size, int64_t most) {
  int64_t tiles = (size + most - 1) / most;
  return tiles == 0 ? 0 : (size + tiles - 1) / tiles;
}

// Queries of a tile, at most. The causal mask wastes half a tile for each, which in a short sequence costs
// more than larger products save: of 256 tokens a quarter with tiles of 64, half with 128.
inline constexpr int64_t kAttentionQueryTile = 256;
constexpr int64_t attentionQueryTile(const AttentionShape &shape) {
  return tileSize(shape.queries, shape.causal && shape.queries < 2048 ? 64 : kAttentionQueryTile);
}

// Elements from row to row of a tile of scores: whole cache lines.
constexpr int64_t attentionRowSize(const AttentionShape &shape) {
  int64_t line = int64_t(64 / elementBytes(attentionComputeType(shape)));
  return (tileSize(shape.keys, kAttentionKeyTile) + line - 1) / line * line;
}

// Elements of workspace, of the type that is computed in: constant in the lengths of the sequences. Forward: one
// tile of scores, and the maximum and the sum of each of its rows. Backward: two tiles, and one
// number per row. Of bf16 also what is staged as f32: the rows of a tile (q and o; backward their cotangents, too), its
// keys and values, and backward, where queries add up, dk and dv of one key/value head: these grow with the number of
// keys. Tensors that are f32 themselves are not staged.
constexpr uint64_t attentionWorkspace(const AttentionShape &shape, bool backward) {
  uint64_t rows = uint64_t(attentionQueryTile(shape));
  uint64_t columns = uint64_t(attentionRowSize(shape));
  uint64_t scores = backward ? rows * (2 * columns + 1) : rows * (columns + 2);
  if (shape.dtype != DType::BF16)
    return scores;
  uint64_t size = uint64_t(shape.headSize), o = shape.wideO ? 0 : 1, grads = shape.wideGrads ? 0 : 1;
  if (!backward)
    return scores + size * (rows * (1 + o) + columns * 2);
  return scores + size * (rows * (1 + 2 * o + grads) + columns * 2 + uint64_t(shape.keys) * 2 * grads);
}

} // namespace shoal::rt

#endif // SHOAL_RT_ATTENTION_H
