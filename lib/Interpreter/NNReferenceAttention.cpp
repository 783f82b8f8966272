// What attention, its gradient, and the merge of two parts mean: one query after the other, by the definition.
#include "NNReference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace shoal::interp {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// The query heads of both ops, and where their elements lie.
struct Heads {
  template <typename Op>
  Heads(Op op, const Tensor &q, const Tensor &k, Operands masks)
      : causal(op.getCausal()), window(op.getWindow()), scale(op.getScale().convertToDouble()), batch(q.shape()[0]),
        queries(q.shape()[1]), keys(k.shape()[1]), kvHeads(q.shape()[2]), groups(q.shape()[3]), size(q.shape()[4]),
        q(q), k(k), segments(masks.take_front(op.getSegments().size())), positions(masks.drop_front(segments.size())) {}

  /// Calls visit(row) for every query of every head: `row` counts [batch, sequence, kv head,
  /// group].
  template <typename Visit> void forEachRow(Visit visit) const {
    for (int64_t row = 0; row < batch * queries * kvHeads * groups; ++row)
      visit(row);
  }
  int64_t query(int64_t row) const { return row / (groups * kvHeads) % queries; }
  int64_t rowBatch(int64_t row) const { return row / (groups * kvHeads * queries); }
  /// The first element of key j of the row's head.
  int64_t key(int64_t row, int64_t j) const {
    return ((rowBatch(row) * keys + j) * kvHeads + row / groups % kvHeads) * size;
  }

  bool sees(int64_t row, int64_t j) const {
    int64_t i = query(row);
    if (!segments.empty() && segments[0]->i[rowBatch(row) * queries + i] != segments[1]->i[rowBatch(row) * keys + j])
      return false;
    if (!positions.empty()) {
      i = positions[0]->i[i];
      j = positions[1]->i[j];
      if (i < 0 || j < 0)
        return false; // one of them does not exist
    }
    return !(causal && j > i) && !(window && std::abs(i - j) >= int64_t(*window));
  }

  double dot(const Tensor &ofRow, int64_t row, const Tensor &ofKey, int64_t j) const {
    double sum = 0;
    for (int64_t e = 0; e < size; ++e)
      sum += ofRow.f[row * size + e] * ofKey.f[key(row, j) + e];
    return sum;
  }
  double score(int64_t row, int64_t j) const { return scale * dot(q, row, k, j); }

  bool causal;
  std::optional<uint64_t> window;
  double scale;
  int64_t batch, queries, keys, kvHeads, groups, size;
  const Tensor &q, &k;
  Operands segments, positions;
};

Results attention(nn::AttentionOp op, Operands in) {
  const Tensor &v = *in[2];
  Heads heads(op, *in[0], *in[1], in.drop_front(3));
  Tensor o = resultOf(op, 0), lse = resultOf(op, 1);
  heads.forEachRow([&](int64_t row) {
    double max = kNothing, sum = 0;
    std::vector<double> scores(heads.keys, kNothing);
    for (int64_t j = 0; j < heads.keys; ++j)
      if (heads.sees(row, j)) {
        scores[j] = heads.score(row, j);
        if (std::isnan(scores[j]) || scores[j] > max)
          max = scores[j];
      }
    lse.f[row] = kNothing;
    if (max == kNothing)
      return;
    for (double score : scores)
      sum += std::exp(score - max);
    lse.f[row] = max + std::log(sum);
    for (int64_t j = 0; j < heads.keys; ++j)
      for (int64_t e = 0; heads.sees(row, j) && e < heads.size; ++e)
        o.f[row * heads.size + e] += std::exp(scores[j] - max) / sum * v.f[heads.key(row, j) + e];
  });
  return SmallVector<Tensor>{std::move(o), std::move(lse)};
}

// With weights w = exp(score - lse) and g = do v^T: dv = w do, dscore = w (g - sum w g), and
// sum w g = do o.
Results attentionGrad(nn::AttentionGradOp op, Operands in) {
  const Tensor &cotangent = *in[0], &q = *in[1], &k = *in[2], &v = *in[3], &o = *in[4],
               &lse = *in[5];
  Heads heads(op, q, k, in.drop_front(6));
  Tensor dq = resultOf(op, 0), dk = resultOf(op, 1), dv = resultOf(op, 2);
  heads.forEachRow([&](int64_t row) {
    if (lse.f[row] == kNothing)
      return;
    double mean = 0;
    for (int64_t e = 0; e < heads.size; ++e)
      mean += cotangent.f[row * heads.size + e] * o.f[row * heads.size + e];
    for (int64_t j = 0; j < heads.keys; ++j) {
      if (!heads.sees(row, j))
        continue;
      double weight = std::exp(heads.score(row, j) - lse.f[row]);
      double slope = heads.scale * weight * (heads.dot(cotangent, row, v, j) - mean);
      for (int64_t e = 0; e < heads.size; ++e) {
        int64_t ofRow = row * heads.size + e, ofKey = heads.key(row, j) + e;
        dq.f[ofRow] += slope * k.f[ofKey];
        dk.f[ofKey] += slope * q.f[ofRow];
        dv.f[ofKey] += weight * cotangent.f[ofRow];
      }
    }
  });
  return SmallVector<Tensor>{std::move(dq), std::move(dk), std::move(dv)};
}

// Weights of which the larger is 1 / (1 + e): exponentials of two log-sum-exps less a third would know no more digits
// than those have behind the point.
Results mergeAttention(nn::MergeAttentionOp op, Operands in) {
  const Tensor &o0 = *in[0], &lse0 = *in[1], &o1 = *in[2], &lse1 = *in[3];
  Tensor o = resultOf(op, 0), lse = resultOf(op, 1);
  int64_t size = o.shape().back();
  for (int64_t row = 0; row < lse.size(); ++row) {
    bool isFirst = lse1.f[row] == kNothing, isSecond = !isFirst && lse0.f[row] == kNothing;
    double off = lse1.f[row] - lse0.f[row], e = std::exp(-std::abs(off)), more = 1 / (1 + e), less = e / (1 + e);
    lse.f[row] = isFirst    ? lse0.f[row]
                 : isSecond ? lse1.f[row]
                            : std::max(lse0.f[row], lse1.f[row]) + std::log1p(e);
    for (int64_t k = row * size; k < (row + 1) * size; ++k)
      o.f[k] = isFirst    ? o0.f[k]
               : isSecond ? o1.f[k]
                          : (off > 0 ? less : more) * o0.f[k] + (off > 0 ? more : less) * o1.f[k];
  }
  return SmallVector<Tensor>{std::move(o), std::move(lse)};
}

} // namespace

void attachAttentionReferences(MLIRContext &context) {
  attachReference<nn::AttentionOp, attention>(context);
  attachReference<nn::AttentionGradOp, attentionGrad>(context);
  attachReference<nn::MergeAttentionOp, mergeAttention>(context);
}

} // namespace shoal::interp
