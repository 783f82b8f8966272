// Attention on the host, blocked with an online softmax (Dao 2022, "FlashAttention"; Milakov and
// Gimelshein 2018 for the softmax): scores exist a tile at a time, tiles that no query may see
// cost nothing, and the backward pass computes them again from the log-sum-exps.
#ifndef SHOAL_RT_HOST_ATTENTION_H
#define SHOAL_RT_HOST_ATTENTION_H

#include "host/library_call.h"
#include "shoal-rt/attention_tiles.h"

#include <memory>
#include <span>

namespace shoal::rt {

// Buffers of the element types of the shape, see shoal-rt/attention.h. The workspace holds attentionWorkspace()
// elements.
struct AttentionBuffers {
  const void *q, *k, *v;
  AttentionMasks masks;
  void *o, *lse;
  void *workspace;
};

struct AttentionGradBuffers {
  const void *cotangent, *q, *k, *v, *o, *lse;
  AttentionMasks masks;
  void *dq, *dk, *dv;
  void *workspace;
};

// o = softmax(scale * q k^T) v over the visible keys, lse = log of the sum of exp(scale * q k^T).
// A query that sees no key gets o = 0 and lse = -inf. Returns attentionTiles(), by counting.
int64_t attention(const AttentionShape &shape, const AttentionBuffers &buffers);

// The cotangents of q, k and v for the cotangent of o. Returns what attention() does.
int64_t attentionGrad(const AttentionShape &shape, const AttentionGradBuffers &buffers);

// Calls of both with the operands of a row.
std::unique_ptr<LibraryCall> bindAttention(const AttentionShape &shape,
                                           std::span<void *const> buffers);
std::unique_ptr<LibraryCall> bindAttentionGrad(const AttentionShape &shape,
                                               std::span<void *const> buffers);

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_ATTENTION_H
