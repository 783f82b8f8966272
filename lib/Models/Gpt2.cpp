// GPT-2 (Radford et al. 2019): layer norm before each block, learned positions, multi-head attention and
// a projection up and down, with names and layouts of transformers' GPT2LMHeadModel.
#include "ModelBuilder.h"

#include <cmath>

using namespace mlir;

namespace shoal::models {
namespace {

class Gpt2Builder {
public:
  Gpt2Builder(MLIRContext &context, const Gpt2Config &config, BatchShape batch)
      : b(context, "gpt2"), config(config), batch(batch) {}

  OwningOpRef<ModuleOp> build(std::string &error) {
    Value x = b.embedTokens("transformer.wte.weight", batch, config.vocab, config.hidden, normal());
    Value positions = b.parameter("transformer.wpe.weight", {config.positions, config.hidden}, normal());
    if (batch.tokens != config.positions)
      positions = b.slice(positions, /*dim=*/0, /*start=*/0, batch.tokens);
    x = b.dropout(b.add(x, positions), config.embeddingDropout);
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      b.beginLayer("h." + Twine(layer));
      std::string prefix = "transformer.h." + std::to_string(layer) + ".";
      x = b.add(x, attention(norm(x, prefix + "ln_1"), prefix + "attn.", layer));
      x = b.add(x, feedForward(norm(x, prefix + "ln_2"), prefix + "mlp."));
    }
    b.beginLayer("head");
    return b.finish(norm(x, "transformer.ln_f"), config.tied, normal(), error);
  }

private:
  Initial normal() const { return Initial::normal(config.initRange); }
  /// Of a projection that ends in the residual stream, to which 2 are added per layer.
  Initial residualNormal() const {
    return Initial::normal(config.initRange / std::sqrt(2.0 * double(config.layers)));
  }

  Value norm(Value x, const std::string &name) {
    Value scale = b.parameter(name + ".weight", {config.hidden}, Initial::ones());
    Value bias = b.parameter(name + ".bias", {config.hidden}, Initial::zeros());
    return b.layerNorm(x, scale, bias, config.eps);
  }

  Value attention(Value x, const std::string &prefix, int64_t layer) {
    int64_t hidden = config.hidden, heads = config.heads, size = config.headSize();
    // Q, K and V are one projection in the checkpoint.
    Value weight = b.parameter(prefix + "c_attn.weight", {hidden, 3, heads, size}, normal(), {hidden, 3 * hidden});
    Value bias = b.parameter(prefix + "c_attn.bias", {3, heads, size}, Initial::zeros(), {3 * hidden});
    Value qkv = b.add(b.contract(x, weight, /*axes=*/1), bias);
    auto part = [&](int64_t index, Shape shape) { return b.reshape(b.slice(qkv, /*dim=*/2, index, 1), shape); };
    Value q = part(0, {batch.rows, batch.tokens, heads, 1, size});
    Value k = part(1, {batch.rows, batch.tokens, heads, size});
    Value v = part(2, {batch.rows, batch.tokens, heads, size});
    double scale = config.scaleAttention ? 1 / std::sqrt(double(size)) : 1;
    if (config.scaleAttentionByLayer)
      scale /= double(layer + 1);
    Value o = b.causalAttention(q, k, v, scale);
    Value outWeight =
        b.parameter(prefix + "c_proj.weight", {heads, 1, size, hidden}, residualNormal(), {hidden, hidden});
    Value outBias = b.parameter(prefix + "c_proj.bias", {hidden}, Initial::zeros());
    return b.dropout(b.add(b.contract(o, outWeight, /*axes=*/3), outBias), config.residualDropout);
  }

  Value feedForward(Value x, const std::string &prefix) {
    Value up = b.parameter(prefix + "c_fc.weight", {config.hidden, config.inner}, normal());
    Value upBias = b.parameter(prefix + "c_fc.bias", {config.inner}, Initial::zeros());
    Value inner = b.activate(config.activation, b.add(b.contract(x, up, /*axes=*/1), upBias));
    Value down = b.parameter(prefix + "c_proj.weight", {config.inner, config.hidden}, residualNormal());
    Value downBias = b.parameter(prefix + "c_proj.bias", {config.hidden}, Initial::zeros());
    return b.dropout(b.add(b.contract(inner, down, /*axes=*/1), downBias), config.residualDropout);
  }

  ModelBuilder b;
  const Gpt2Config &config;
  BatchShape batch;
};

} // namespace

OwningOpRef<ModuleOp> buildGpt2(MLIRContext &context, const Gpt2Config &config, BatchShape batch,
                                std::string &error) {
  error = findBatchFault(batch, config.positions, "n_positions");
  return error.empty() ? Gpt2Builder(context, config, batch).build(error) : nullptr;
}

} // namespace shoal::models
