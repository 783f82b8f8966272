// Which fields of a config.json are honoured, and what transformers 4.44 takes where one is absent or null.
#include "shoal/Models/Config.h"

#include "ConfigFields.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace shoal::models {
namespace {

// The smallest and largest that an epsilon, a range or a base can sensibly be.
constexpr double kTiny = 1e-30, kHuge = 1e30;
constexpr int64_t kMostLayers = 10000;

constexpr std::pair<llvm::StringLiteral, Activation> kActivations[] = {
    {"gelu_new", Activation::GeluTanh}, {"gelu_pytorch_tanh", Activation::GeluTanh}, {"gelu", Activation::GeluErf},
    {"relu", Activation::Relu},         {"silu", Activation::Silu},                  {"swish", Activation::Silu}};

Activation activation(ConfigFields &fields, llvm::StringRef name, llvm::StringRef absent) {
  llvm::SmallVector<llvm::StringRef> words(llvm::make_first_range(kActivations));
  std::string word = fields.word(name, words, absent);
  for (const auto &[known, kind] : kActivations)
    if (known == word)
      return kind;
  return Activation::Relu; // harmless after a problem
}

int64_t layerCount(ConfigFields &fields, llvm::StringRef name) {
  int64_t layers = fields.size(name);
  if (layers <= kMostLayers)
    return layers;
  fields.complain("'" + name + "' must be at most " + llvm::Twine(kMostLayers) + ", got: " + llvm::Twine(layers));
  return 1;
}

/// A rate that is honoured; 0 with --dropout off.
double dropoutRate(ConfigFields &fields, llvm::StringRef name, double absent, Dropout dropout) {
  double rate = fields.number(name, absent, 0, 1);
  if (rate == 1)
    fields.complain("'" + name + "' must be below 1, got: 1");
  return dropout == Dropout::Off ? 0 : rate;
}

/// A rate that must be 0, since attention has no dropout here.
void attentionDropout(ConfigFields &fields, llvm::StringRef name, double absent, Dropout dropout) {
  double rate = fields.number(name, absent, 0, 1);
  if (rate == 0 || dropout == Dropout::Off)
    return;
  fields.complain("'" + name + "' must be 0: there is no dropout inside attention; --dropout off builds the model "
                  "without any, got: " + (fields.has(name) ? "" : "none, which means ") + show(rate));
}

void mustDivide(ConfigFields &fields, llvm::StringRef part, int64_t partSize, llvm::StringRef whole,
                int64_t wholeSize) {
  if (wholeSize % partSize != 0)
    fields.complain("'" + part + "' must divide '" + whole + "', got: " + llvm::Twine(partSize) + " and " +
                    llvm::Twine(wholeSize));
}

/// The base of rotary positions. Files of transformers 5 keep it in an object of its own.
double ropeTheta(ConfigFields &fields) {
  double theta = fields.number("rope_theta", 10000.0, kTiny, kHuge);
  for (llvm::StringRef name : {"rope_scaling", "rope_parameters"}) {
    const rt::InputJson *object = fields.object(name);
    if (!object)
      continue;
    for (const auto &[key, value] : object->items()) {
      if ((key == "rope_type" || key == "type") && value == "default")
        continue;
      if (name == "rope_parameters" && key == "rope_theta" && value.is_number() && value.get<double>() >= kTiny &&
          value.get<double>() <= kHuge) {
        theta = value.get<double>();
        continue;
      }
      fields.complain("'" + name + "' is supported only without effect (null, or the default rope_type), got: " +
                      show(key) + ": " + show(value));
    }
  }
  return theta;
}

} // namespace

llvm::ArrayRef<llvm::StringLiteral> withoutEffect() {
  static constexpr llvm::StringLiteral names[] = {
      // Where the file comes from, and the type that weights are kept in: --load converts.
      "_name_or_path", "transformers_version", "torch_dtype", "dtype",
      // How a model is run there, not what it computes.
      "use_cache", "return_dict", "output_attentions", "output_hidden_states", "gradient_checkpointing",
      "_attn_implementation_autoset", "reorder_and_upcast_attn",
      // Text in and out.
      "bos_token_id", "eos_token_id", "task_specific_params",
      // Heads for other tasks.
      "summary_type", "summary_use_proj", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
      "id2label", "label2id",
      // An old name of n_positions that transformers never reads.
      "n_ctx"};
  return names;
}

std::optional<Gpt2Config> parseGpt2Config(llvm::StringRef text, Dropout dropout, std::string &error) {
  ConfigFields fields(text);
  fields.word("model_type", {"gpt2"});
  fields.mustList("architectures", {"GPT2LMHeadModel", "GPT2Model"});
  Gpt2Config config;
  config.vocab = fields.size("vocab_size");
  config.positions = fields.size("n_positions");
  config.hidden = fields.size("n_embd");
  config.heads = fields.size("n_head");
  config.layers = layerCount(fields, "n_layer");
  config.inner = fields.sizeOrNull("n_inner", std::nullopt).value_or(4 * config.hidden);
  mustDivide(fields, "n_head", config.heads, "n_embd", config.hidden);
  config.activation = activation(fields, "activation_function", "gelu_new");
  config.eps = fields.number("layer_norm_epsilon", 1e-5, kTiny, 1);
  config.initRange = fields.number("initializer_range", 0.02, 0, kHuge);
  config.embeddingDropout = dropoutRate(fields, "embd_pdrop", 0.1, dropout);
  config.residualDropout = dropoutRate(fields, "resid_pdrop", 0.1, dropout);
  attentionDropout(fields, "attn_pdrop", 0.1, dropout);
  config.scaleAttention = fields.flag("scale_attn_weights", true);
  config.scaleAttentionByLayer = fields.flag("scale_attn_by_inverse_layer_idx", false);
  config.tied = fields.flag("tie_word_embeddings", true);
  fields.mustBe("add_cross_attention", false);
  fields.mustBe("is_encoder_decoder", false);
  fields.mustBe("pruned_heads", rt::InputJson::object());
  fields.ignore(withoutEffect());
  fields.ignore({"pad_token_id"}); // the embedding of the padding token is trained as any other
  if (!fields.finish(error))
    return std::nullopt;
  return config;
}

std::optional<LlamaConfig> parseLlamaConfig(llvm::StringRef text, Dropout dropout, std::string &error) {
  ConfigFields fields(text);
  bool isMistral = fields.word("model_type", {"llama", "mistral"}) == "mistral";
  fields.mustList("architectures", {"LlamaForCausalLM", "LlamaModel", "MistralForCausalLM", "MistralModel"});
  LlamaConfig config;
  config.vocab = fields.size("vocab_size");
  config.positions = fields.size("max_position_embeddings");
  config.hidden = fields.size("hidden_size");
  config.heads = fields.size("num_attention_heads");
  // Null is as many as there are query heads; a file of Mistral without the field means the 8 of its first model.
  config.kvHeads = fields.sizeOrNull("num_key_value_heads", isMistral ? std::optional<int64_t>(8) : std::nullopt)
                       .value_or(config.heads);
  config.layers = layerCount(fields, "num_hidden_layers");
  config.inner = fields.size("intermediate_size");
  std::optional<int64_t> headSize = fields.sizeOrNull("head_dim", std::nullopt);
  if (!headSize)
    mustDivide(fields, "num_attention_heads", config.heads, "hidden_size", config.hidden);
  config.headSize = headSize.value_or(std::max<int64_t>(config.hidden / config.heads, 1));
  mustDivide(fields, "num_key_value_heads", config.kvHeads, "num_attention_heads", config.heads);
  if (config.headSize % 2 != 0)
    fields.complain("the size of a head must be even for rotary positions, got: " + llvm::Twine(config.headSize));
  fields.mustBe("hidden_act", "silu");
  config.eps = fields.number("rms_norm_eps", 1e-6, kTiny, 1);
  config.initRange = fields.number("initializer_range", 0.02, 0, kHuge);
  config.ropeTheta = ropeTheta(fields);
  config.tied = fields.flag("tie_word_embeddings", false);
  attentionDropout(fields, "attention_dropout", 0, dropout);
  if (isMistral) {
    config.attentionBias = config.mlpBias = false;
    config.window = fields.sizeOrNull("sliding_window", 4096);
  } else {
    config.attentionBias = fields.flag("attention_bias", false);
    config.mlpBias = fields.flag("mlp_bias", false);
    fields.mustBe("pretraining_tp", 1);
    fields.mustBe("sliding_window", nullptr, "only Mistral has one");
  }
  fields.mustBe("pad_token_id", nullptr, "its embedding would get no gradient");
  fields.mustBe("is_encoder_decoder", false);
  fields.ignore(withoutEffect());
  if (!fields.finish(error))
    return std::nullopt;
  return config;
}

} // namespace shoal::models
