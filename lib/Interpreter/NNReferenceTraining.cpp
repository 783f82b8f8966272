// What the losses and the optimizers' updates mean.
#include "Indexing.h"
#include "NNReference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace shoal::interp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Results mseLoss(nn::MseLossOp op, Operands in) {
  Tensor loss = resultOf(op);
  for (int64_t k = 0; k < in[0]->size(); ++k) {
    double difference = in[0]->f[k] - in[1]->f[k];
    loss.f[0] += difference * difference;
  }
  if (op.getReduction() == nn::LossReduction::mean)
    loss.f[0] /= double(in[0]->size());
  return single(std::move(loss));
}

// log(sum(exp(x))) of a row.
double logSumExp(const double *row, int64_t size) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t c = 0; c < size; ++c)
    if (std::isnan(row[c]) || row[c] > max)
      max = row[c];
  for (int64_t c = 0; c < size; ++c)
    sum += std::exp(row[c] - max);
  return max + std::log(sum);
}

Results crossEntropy(nn::CrossEntropyOp op, Operands in) {
  const Tensor &logits = *in[0], &targets = *in[1];
  Tensor loss = resultOf(op), lses = resultOf(op, 1);
  int64_t classes = logits.shape().back(), rows = product(logits.shape().drop_back()), counted = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double *row = logits.f.data() + r * classes;
    double lse = lses.f[r] = logSumExp(row, classes);
    if (!targets.isFloat() && targets.i[r] == int64_t(op.getIgnoreIndex()))
      continue;
    ++counted;
    if (targets.isFloat()) {
      for (int64_t c = 0; c < classes; ++c)
        loss.f[0] -= targets.f[r * classes + c] * (row[c] - lse);
    } else if (targets.i[r] < 0 || targets.i[r] >= classes) {
      loss.f[0] = kNaN;
    } else {
      loss.f[0] += lse - row[targets.i[r]];
    }
  }
  if (op.getReduction() == nn::LossReduction::mean)
    loss.f[0] /= double(std::max<int64_t>(counted, 1));
  return SmallVector<Tensor>{std::move(loss), std::move(lses)};
}

Results crossEntropyGrad(nn::CrossEntropyGradOp op, Operands in) {
  const Tensor &logits = *in[0], &targets = *in[1];
  double scale = in[3]->f[0];
  Tensor result = resultOf(op);
  int64_t classes = logits.shape().back(), rows = product(logits.shape().drop_back());
  for (int64_t r = 0; r < rows; ++r) {
    if (!targets.isFloat() && targets.i[r] == int64_t(op.getIgnoreIndex()))
      continue;
    const double *row = logits.f.data() + r * classes;
    double lse = in[2]->f[r], mass = 1;
    if (targets.isFloat()) {
      mass = 0;
      for (int64_t c = 0; c < classes; ++c)
        mass += targets.f[r * classes + c];
    }
    bool known = targets.isFloat() || (targets.i[r] >= 0 && targets.i[r] < classes);
    for (int64_t c = 0; c < classes; ++c) {
      double p = targets.isFloat() ? targets.f[r * classes + c] : double(targets.i[r] == c);
      result.f[r * classes + c] = known ? scale * (std::exp(row[c] - lse) * mass - p) : kNaN;
    }
  }
  return single(std::move(result));
}

Results sgdUpdate(nn::SgdUpdateOp op, Operands in) {
  const Tensor &p = *in[0], &g = *in[1];
  double lr = in[2]->f[0], decay = op.getWeightDecay().convertToDouble();
  Tensor result = resultOf(op);
  for (int64_t k = 0; k < result.size(); ++k)
    result.f[k] = p.f[k] - lr * (g.f[k] + decay * p.f[k]);
  return single(std::move(result));
}

Results momentumUpdate(nn::MomentumUpdateOp op, Operands in) {
  const Tensor &p = *in[0], &g = *in[1], &v = *in[2];
  double lr = in[3]->f[0], momentum = op.getMomentum().convertToDouble(),
         decay = op.getWeightDecay().convertToDouble();
  Tensor newP = resultOf(op, 0), newV = resultOf(op, 1);
  for (int64_t k = 0; k < newP.size(); ++k) {
    double grad = g.f[k] + decay * p.f[k];
    newV.f[k] = momentum * v.f[k] + grad;
    newP.f[k] = p.f[k] - lr * (op.getNesterov() ? grad + momentum * newV.f[k] : newV.f[k]);
  }
  return SmallVector<Tensor>{std::move(newP), std::move(newV)};
}

Results adamUpdate(nn::AdamUpdateOp op, Operands in) {
  const Tensor &p = *in[0], &g = *in[1], &m = *in[2], &v = *in[3];
  double lr = in[4]->f[0], t = double(in[5]->i[0]), beta1 = op.getBeta1().convertToDouble(),
         beta2 = op.getBeta2().convertToDouble(), eps = op.getEps().convertToDouble(),
         decay = op.getWeightDecay().convertToDouble();
  Tensor newP = resultOf(op, 0), newM = resultOf(op, 1), newV = resultOf(op, 2);
  for (int64_t k = 0; k < newP.size(); ++k) {
    double grad = g.f[k] + (op.getDecoupled() ? 0.0 : decay * p.f[k]);
    newM.f[k] = beta1 * m.f[k] + (1 - beta1) * grad;
    newV.f[k] = beta2 * v.f[k] + (1 - beta2) * grad * grad;
    double mean = newM.f[k] / (1 - std::pow(beta1, t));
    double square = newV.f[k] / (1 - std::pow(beta2, t));
    newP.f[k] = p.f[k] - lr * (mean / (std::sqrt(square) + eps)) -
                (op.getDecoupled() ? lr * decay * p.f[k] : 0.0);
  }
  return SmallVector<Tensor>{std::move(newP), std::move(newM), std::move(newV)};
}

/// Adam divides by what its gradients have been: where these are rounding themselves, the quotient may be anything. So
/// a new value may differ by what the update makes of the difference that its gradients may have.
std::vector<double> amplifyAdamError(nn::AdamUpdateOp op, llvm::function_ref<double(Value)> scalarOf,
                                     ArrayRef<const Tensor *> results, double off) {
  double lr = std::abs(scalarOf(op.getLr())), t = scalarOf(op.getStep()), eps = op.getEps().convertToDouble();
  double ofMean = 1 - std::pow(op.getBeta1().convertToDouble(), t);
  double ofSquare = 1 - std::pow(op.getBeta2().convertToDouble(), t);
  std::vector<double> more;
  for (auto [m, v] : llvm::zip_equal(results[1]->f, results[2]->f)) {
    // Both are means of gradients, so they are off by no more than these.
    double mean = std::abs(m) / ofMean, root = std::sqrt(std::max(v, 0.0) / ofSquare);
    double least = std::max(root - off, 0.0) + eps;
    double change = lr * off * (1 + mean / std::max(root + eps, least)) / least;
    // Whatever the gradients, an update moves by about the rate, one way or the other.
    more.push_back(std::isnan(change) ? 0 : std::min(change, 2 * lr));
  }
  return more;
}

} // namespace

void attachLossReferences(MLIRContext &context) {
  attachReference<nn::MseLossOp, mseLoss>(context);
  attachReference<nn::CrossEntropyOp, crossEntropy>(context);
  attachReference<nn::CrossEntropyGradOp, crossEntropyGrad>(context);
}

void attachUpdateReferences(MLIRContext &context) {
  attachReference<nn::SgdUpdateOp, sgdUpdate>(context);
  attachReference<nn::MomentumUpdateOp, momentumUpdate>(context);
  nn::AdamUpdateOp::attachInterface<UpdateModel<nn::AdamUpdateOp, adamUpdate, amplifyAdamError>>(context);
}

} // namespace shoal::interp
