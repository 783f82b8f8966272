// Llama (Touvron et al. 2023) and Mistral (Jiang et al. 2023): RMS norms, rotary positions, grouped-query
// attention and a gated projection, with names and layouts of transformers' LlamaForCausalLM. Weights are
// [out, in] there, so every contraction reads its weight transposed.
#include "ModelBuilder.h"

#include <cmath>

using namespace mlir;

namespace shoal::models {
namespace {

class LlamaBuilder {
public:
  LlamaBuilder(MLIRContext &context, const LlamaConfig &config, BatchShape batch)
      : b(context, "llama"), config(config), batch(batch), groups(config.heads / config.kvHeads) {}

  OwningOpRef<ModuleOp> build(std::string &error) {
    Value x = b.embedTokens("model.embed_tokens.weight", batch, config.vocab, config.hidden, normal());
    positions = b.positions(batch.tokens);
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      b.beginLayer("layers." + Twine(layer));
      std::string prefix = "model.layers." + std::to_string(layer) + ".";
      x = b.add(x, attention(norm(x, prefix + "input_layernorm"), prefix + "self_attn."));
      x = b.add(x, feedForward(norm(x, prefix + "post_attention_layernorm"), prefix + "mlp."));
    }
    b.beginLayer("head");
    return b.finish(norm(x, "model.norm"), config.tied, normal(), error);
  }

private:
  Initial normal() const { return Initial::normal(config.initRange); }

  Value norm(Value x, const std::string &name) {
    return b.rmsNorm(x, b.parameter(name + ".weight", {config.hidden}, Initial::ones()), config.eps);
  }

  /// Contracts the last `inner.size()` dimensions of `x` with a weight [outer..., inner...], which the file
  /// keeps as a matrix.
  Value project(Value x, const std::string &name, Shape outer, Shape inner, bool hasBias) {
    SmallVector<int64_t> shape(outer);
    llvm::append_range(shape, inner);
    int64_t outerSize = product(outer);
    SmallVector<int64_t> file;
    if (shape.size() > 2)
      file = {outerSize, product(inner)};
    Value y = b.contract(x, b.parameter(name + ".weight", shape, normal(), file), int64_t(inner.size()),
                         /*transposeB=*/true);
    if (!hasBias)
      return y;
    return b.add(y,
                 b.parameter(name + ".bias", outer, Initial::zeros(), outer.size() > 1 ? Shape(outerSize) : Shape()));
  }

  Value attention(Value x, const std::string &prefix) {
    int64_t hidden = config.hidden, kv = config.kvHeads, size = config.headSize;
    bool bias = config.attentionBias;
    Value q = project(x, prefix + "q_proj", {kv, groups, size}, {hidden}, bias);
    Value k = project(x, prefix + "k_proj", {kv, size}, {hidden}, bias);
    Value v = project(x, prefix + "v_proj", {kv, size}, {hidden}, bias);
    q = b.rope(q, positions, config.ropeTheta);
    k = b.rope(k, positions, config.ropeTheta);
    Value o = b.causalAttention(q, k, v, 1 / std::sqrt(double(size)), config.window);
    return project(o, prefix + "o_proj", {hidden}, {kv, groups, size}, bias);
  }

  Value feedForward(Value x, const std::string &prefix) {
    int64_t hidden = config.hidden, inner = config.inner;
    Value gate = b.activate(Activation::Silu, project(x, prefix + "gate_proj", {inner}, {hidden}, config.mlpBias));
    Value up = project(x, prefix + "up_proj", {inner}, {hidden}, config.mlpBias);
    return project(b.mul(gate, up), prefix + "down_proj", {hidden}, {inner}, config.mlpBias);
  }

  static int64_t product(Shape shape) {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    return elements;
  }

  ModelBuilder b;
  const LlamaConfig &config;
  BatchShape batch;
  int64_t groups; // query heads of a key/value head
  Value positions;
};

} // namespace

OwningOpRef<ModuleOp> buildLlama(MLIRContext &context, const LlamaConfig &config, BatchShape batch,
                                 std::string &error) {
  error = findBatchFault(batch, config.positions, "max_position_embeddings");
  return error.empty() ? LlamaBuilder(context, config, batch).build(error) : nullptr;
}

} // namespace shoal::models
