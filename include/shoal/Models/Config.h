// A model's config.json, as Hugging Face's transformers write it, read into what the builders of
// Models.h need.
//
// Every field of a file is one of three things: honoured; known to change neither the loss nor the
// logits (`withoutEffect`); or an error that names it. So a model is never built that differs in
// silence from the one its file describes. Files are data from outside: all sizes are bounded.
#ifndef SHOAL_MODELS_CONFIG_H
#define SHOAL_MODELS_CONFIG_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace shoal::models {

/// What a layer's first projection goes through.
enum class Activation { GeluTanh, GeluErf, Relu, Silu };

/// Whether dropout is what the file says, or none whatever it says.
enum class Dropout { Config, Off };

/// `model_type` gpt2.
struct Gpt2Config {
  int64_t vocab, positions, hidden, heads, layers, inner;
  Activation activation;
  double eps, initRange;
  double embeddingDropout, residualDropout; // 0: none
  bool scaleAttention;                      // by 1/sqrt(head size)
  bool scaleAttentionByLayer;               // and by 1/(layer + 1)
  bool tied;                                // the head's weight is the embedding's

  int64_t headSize() const { return hidden / heads; }
};

/// `model_type` llama, and mistral, which is a Llama with a sliding window.
struct LlamaConfig {
  int64_t vocab, positions, hidden, heads, kvHeads, headSize, layers, inner;
  double eps, initRange, ropeTheta;
  bool tied, attentionBias, mlpBias;
  std::optional<int64_t> window;
};

/// Reads the text of a config.json. Nothing with one line in `error`, without the name of the file.
std::optional<Gpt2Config> parseGpt2Config(llvm::StringRef text, Dropout dropout, std::string &error);
std::optional<LlamaConfig> parseLlamaConfig(llvm::StringRef text, Dropout dropout, std::string &error);

/// Fields of a config.json that change neither the loss nor the logits of either family.
llvm::ArrayRef<llvm::StringLiteral> withoutEffect();

} // namespace shoal::models

#endif // SHOAL_MODELS_CONFIG_H
