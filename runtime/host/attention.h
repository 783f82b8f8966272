// Attention on the host, blocked with an online softmax (Dao 2022, "FlashAttention"; Milakov and
// Gimelshein 2018 for the softmax): scores exist a tile at a time, tiles that no query may see
// are skipped, and the backward pass computes them again from the log-sum-exps.
#ifndef SHOAL_RT_HOST_ATTENTION_H
#define SHOAL_RT_HOST_ATTENTION_H

#include "host/library_call.h"
#include "shoal-rt/attention.h"

#include <memory>
#include <span>

namespace shoal::rt {

// Buffers of the element type of the shape, see shoal-rt/attention.h. Segments are null when the
// shape has none. The workspace holds attentionWorkspace() elements.
struct AttentionBuffers {
  const void *q, *k, *v;
  const int64_t *querySegments, *keySegments;
  void *o, *lse;
  void *workspace;
};

struct AttentionGradBuffers {
  const void *cotangent, *q, *k, *v, *o, *lse;
  const int64_t *querySegments, *keySegments;
  void *dq, *dk, *dv;
  void *workspace;
};

// o = softmax(scale * q k^T) v over the visible keys, lse = log of the sum of exp(scale * q k^T).
// A query that sees no key gets o = 0 and lse = -inf.
void attention(const AttentionShape &shape, const AttentionBuffers &buffers);

// The cotangents of q, k and v for the cotangent of o.
void attentionGrad(const AttentionShape &shape, const AttentionGradBuffers &buffers);

// Calls of both with the operands of a row.
std::unique_ptr<LibraryCall> bindAttention(const AttentionShape &shape,
                                           std::span<void *const> buffers);
std::unique_ptr<LibraryCall> bindAttentionGrad(const AttentionShape &shape,
                                               std::span<void *const> buffers);

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_ATTENTION_H
