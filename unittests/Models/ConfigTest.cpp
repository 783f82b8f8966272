// config.json of GPT-2 and Llama: what is honoured, what transformers takes where a field is absent, and one
// line for each field that is not honoured.
#include "shoal/Models/Config.h"

#include <gtest/gtest.h>

namespace shoal::models {
namespace {

/// A config with some fields replaced: of equal names the later one would be refused, so the base leaves them out.
std::string gpt2(const std::string &more, bool withHeads = true) {
  return R"({"model_type": "gpt2", "vocab_size": 29, "n_positions": 16, "n_embd": 24, "n_layer": 2, "attn_pdrop": 0.0)" +
         std::string(withHeads ? R"(, "n_head": 4)" : "") + more + "}";
}
std::string llama(const std::string &more, const std::string &type = "llama") {
  return R"({"model_type": ")" + type +
         R"(", "vocab_size": 31, "max_position_embeddings": 32, "hidden_size": 48, "num_attention_heads": 6,
            "num_hidden_layers": 2, "intermediate_size": 80)" +
         more + "}";
}

Gpt2Config readGpt2(const std::string &text, Dropout dropout = Dropout::Config) {
  std::string error;
  auto config = parseGpt2Config(text, dropout, error);
  EXPECT_EQ(error, "");
  return config.value_or(Gpt2Config());
}
LlamaConfig readLlama(const std::string &text) {
  std::string error;
  auto config = parseLlamaConfig(text, Dropout::Config, error);
  EXPECT_EQ(error, "");
  return config.value_or(LlamaConfig());
}

TEST(Config, Gpt2AbsentFields) {
  Gpt2Config config = readGpt2(gpt2(""));
  EXPECT_EQ(config.vocab, 29);
  EXPECT_EQ(config.headSize(), 6);
  EXPECT_EQ(config.inner, 96);
  EXPECT_EQ(config.activation, Activation::GeluTanh);
  EXPECT_EQ(config.eps, 1e-5);
  EXPECT_EQ(config.initRange, 0.02);
  EXPECT_EQ(config.residualDropout, 0.1);
  EXPECT_EQ(config.embeddingDropout, 0.1);
  EXPECT_TRUE(config.tied && config.scaleAttention);
  EXPECT_FALSE(config.scaleAttentionByLayer);
}

TEST(Config, Gpt2Fields) {
  Gpt2Config config = readGpt2(gpt2(R"(, "n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-6,
    "resid_pdrop": 0.25, "embd_pdrop": 0, "tie_word_embeddings": false, "scale_attn_weights": false,
    "scale_attn_by_inverse_layer_idx": true, "initializer_range": 0.5, "architectures": ["GPT2LMHeadModel"])"));
  EXPECT_EQ(config.inner, 40);
  EXPECT_EQ(config.activation, Activation::Relu);
  EXPECT_EQ(config.eps, 1e-6);
  EXPECT_EQ(config.initRange, 0.5);
  EXPECT_EQ(config.residualDropout, 0.25);
  EXPECT_EQ(config.embeddingDropout, 0);
  EXPECT_FALSE(config.tied || config.scaleAttention);
  EXPECT_TRUE(config.scaleAttentionByLayer);
}

// The file of the published 124M model, which has fields for other tasks, and an old name of one.
TEST(Config, Gpt2AsPublished) {
  std::string text = R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
    "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
    "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
    "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})";
  Gpt2Config config = readGpt2(text, Dropout::Off);
  EXPECT_EQ(config.inner, 3072);
  EXPECT_EQ(config.residualDropout, 0);
  std::string error;
  EXPECT_FALSE(parseGpt2Config(text, Dropout::Config, error));
  EXPECT_EQ(error, "'attn_pdrop' must be 0: there is no dropout inside attention; --dropout off builds the model "
                   "without any, got: 0.1");
}

TEST(Config, LlamaAbsentFields) {
  LlamaConfig config = readLlama(llama(""));
  EXPECT_EQ(config.kvHeads, 6);
  EXPECT_EQ(config.headSize, 8);
  EXPECT_EQ(config.eps, 1e-6);
  EXPECT_EQ(config.ropeTheta, 1e4);
  EXPECT_FALSE(config.tied || config.attentionBias || config.mlpBias || config.window);
}

TEST(Config, LlamaFields) {
  LlamaConfig config = readLlama(llama(R"(, "num_key_value_heads": 2, "head_dim": 10, "rms_norm_eps": 1e-5,
    "rope_theta": 500000, "rope_scaling": null, "tie_word_embeddings": true, "attention_bias": true, "mlp_bias": true,
    "hidden_act": "silu", "pretraining_tp": 1, "attention_dropout": 0.0, "torch_dtype": "bfloat16")"));
  EXPECT_EQ(config.kvHeads, 2);
  EXPECT_EQ(config.headSize, 10);
  EXPECT_EQ(config.ropeTheta, 5e5);
  EXPECT_TRUE(config.tied && config.attentionBias && config.mlpBias);
  // As transformers 5 writes it.
  EXPECT_EQ(readLlama(llama(R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 2e4})")).ropeTheta, 2e4);
}

TEST(Config, MistralAbsentFields) {
  std::string text = R"({"model_type": "mistral", "vocab_size": 31, "max_position_embeddings": 32, "hidden_size": 64,
    "num_attention_heads": 16, "num_hidden_layers": 2, "intermediate_size": 80)";
  LlamaConfig config = readLlama(text + "}");
  EXPECT_EQ(config.kvHeads, 8);
  EXPECT_EQ(config.window, 4096);
  EXPECT_EQ(config.headSize, 4);
  EXPECT_EQ(config.eps, 1e-6);
  EXPECT_EQ(config.ropeTheta, 1e4);
  EXPECT_FALSE(config.tied || config.attentionBias || config.mlpBias);
  EXPECT_EQ(readLlama(text + R"(, "sliding_window": 5})").window, 5);
}

// Null says something of its own: as many heads as queries have, no window; of other fields what absence says.
TEST(Config, NullFields) {
  LlamaConfig config = readLlama(llama(R"(, "num_key_value_heads": null, "sliding_window": null, "head_dim": null)", "mistral"));
  EXPECT_EQ(config.kvHeads, 6);
  EXPECT_EQ(config.window, std::nullopt);
  EXPECT_EQ(config.headSize, 8);
  EXPECT_EQ(readLlama(llama(R"(, "num_key_value_heads": null, "sliding_window": null, "pad_token_id": null,
    "rope_scaling": null, "architectures": null)")).kvHeads, 6);
  EXPECT_EQ(readGpt2(gpt2(R"(, "n_inner": null, "task_specific_params": null)")).inner, 96);
}

TEST(Config, RefusesWhatIsNotHonoured) {
  struct {
    std::string text, error;
  } gpt2Cases[] = {
      {"", "the text is not a JSON object"},
      {"[1]", "the text is not a JSON object"},
      {R"({"n_head": 1, "n_head": 2})", R"(the text holds "n_head" twice)"},
      {"{}", "'model_type' is missing, expected gpt2"},
      {llama(""), R"('model_type' must be gpt2, got: "llama")"},
      {gpt2("", false), "'n_head' is missing, expected a whole number"},
      {gpt2(R"(, "n_head": 5)", false), "'n_head' must divide 'n_embd', got: 5 and 24"},
      {gpt2(R"(, "n_head": "4")", false), R"('n_head' must be a whole number from 1 to 16777216, got: "4")"},
      {gpt2(R"(, "n_head": 4.0)", false), "'n_head' must be a whole number from 1 to 16777216, got: 4.0"},
      {gpt2(R"(, "n_head": -4)", false), "'n_head' must be a whole number from 1 to 16777216, got: -4"},
      {gpt2(R"(, "n_inner": 99999999)"), "'n_inner' must be a whole number from 1 to 16777216, got: 99999999"},
      {gpt2(R"(, "n_head": null)", false), "'n_head' must be a whole number from 1 to 16777216, got: null"},
      {gpt2(R"(, "layer_norm_epsilon": null)"), "'layer_norm_epsilon' must be a number from 1e-30 to 1.0, got: null"},
      {gpt2(R"(, "tie_word_embeddings": null)"), "'tie_word_embeddings' must be true or false, got: null"},
      {gpt2(R"(, "add_cross_attention": null)"), "'add_cross_attention' must be false, got: null"},
      {gpt2(R"(, "activation_function": null)"),
       "'activation_function' must be gelu_new or gelu_pytorch_tanh or gelu or relu or silu or swish, got: null"},
      {gpt2(R"(, "activation_function": "gelu_fast")"), "'activation_function' must be gelu_new or gelu_pytorch_tanh "
                                                        "or gelu or relu or silu or swish, got: \"gelu_fast\""},
      {gpt2(R"(, "resid_pdrop": 1)"), "'resid_pdrop' must be below 1, got: 1"},
      {gpt2(R"(, "resid_pdrop": -0.5)"), "'resid_pdrop' must be a number from 0.0 to 1.0, got: -0.5"},
      {gpt2(R"(, "tie_word_embeddings": 1)"), "'tie_word_embeddings' must be true or false, got: 1"},
      {gpt2(R"(, "add_cross_attention": true)"), "'add_cross_attention' must be false, got: true"},
      {gpt2(R"(, "pruned_heads": {"0": [1]})"), R"('pruned_heads' must be {}, got: {"0":[1]})"},
      {gpt2(R"(, "architectures": ["GPT2ForSequenceClassification"])"),
       R"('architectures' must be a list of GPT2LMHeadModel or GPT2Model, got: ["GPT2ForSequenceClassification"])"},
      {gpt2(R"(, "quantization_config": {"bits": 4})"),
       R"(field "quantization_config" is not supported, got: {"bits":4})"},
      {gpt2(R"(, "a\nb\u007f": 1)"), R"(field "a\nb\u007f" is not supported, got: 1)"},
  };
  for (const auto &test : gpt2Cases) {
    std::string error;
    EXPECT_FALSE(parseGpt2Config(test.text, Dropout::Config, error)) << test.text;
    EXPECT_EQ(error, test.error);
  }
  struct {
    std::string text, error;
  } llamaCases[] = {
      {llama("", "qwen2"), R"('model_type' must be llama or mistral, got: "qwen2")"},
      {llama(R"(, "num_key_value_heads": 4)"), "'num_key_value_heads' must divide 'num_attention_heads', got: 4 and 6"},
      {llama(R"(, "head_dim": 7)"), "the size of a head must be even for rotary positions, got: 7"},
      {llama(R"(, "hidden_act": null)"), R"('hidden_act' must be "silu", got: null)"},
      {llama(R"(, "rope_theta": null)"), "'rope_theta' must be a number from 1e-30 to 1e+30, got: null"},
      {llama(R"(, "sliding_window": 0, "num_key_value_heads": 2)", "mistral"),
       "'sliding_window' must be a whole number from 1 to 16777216, got: 0"},
      {llama(R"(, "hidden_act": "gelu")"), R"('hidden_act' must be "silu", got: "gelu")"},
      {llama(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0})"),
       "'rope_scaling' is supported only without effect (null, or the default rope_type), got: \"factor\": 8.0"},
      {llama(R"(, "rope_parameters": {"rope_type": "yarn"})"),
       "'rope_parameters' is supported only without effect (null, or the default rope_type), got: \"rope_type\": "
       "\"yarn\""},
      {llama(R"(, "rope_theta": 0)"), "'rope_theta' must be a number from 1e-30 to 1e+30, got: 0"},
      {llama(R"(, "attention_dropout": 0.1)"), "'attention_dropout' must be 0: there is no dropout inside attention; "
                                               "--dropout off builds the model without any, got: 0.1"},
      {llama(R"(, "sliding_window": 4096)"), "'sliding_window' must be null (only Mistral has one), got: 4096"},
      {llama(R"(, "pretraining_tp": 2)"), "'pretraining_tp' must be 1, got: 2"},
      {llama(R"(, "pad_token_id": 0)"), "'pad_token_id' must be null (its embedding would get no gradient), got: 0"},
      {llama(R"(, "attention_bias": true)", "mistral"),
       "'num_key_value_heads' must divide 'num_attention_heads', got: 8 and 6"},
      {llama(R"(, "attention_bias": true, "num_key_value_heads": 2)", "mistral"),
       R"(field "attention_bias" is not supported, got: true)"},
  };
  for (const auto &test : llamaCases) {
    std::string error;
    EXPECT_FALSE(parseLlamaConfig(test.text, Dropout::Config, error)) << test.text;
    EXPECT_EQ(error, test.error);
  }
}

} // namespace
} // namespace shoal::models
