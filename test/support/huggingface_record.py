#!/usr/bin/env python3
"""Records what Hugging Face's transformers compute for small models, as the data of huggingface.py.

usage: huggingface_record.py FOLDER

Needs PyTorch and transformers. Weights are `shift + scale*sin(0.37*(i+1)+k)` in f32, i the row-major flat index, so that
the data need not hold them. Token ids are (7i+3) mod V, as in the other golden models; the label of a token is the next
one of its row, and the last one's is -100. The losses are those before each step and after the last. The numbers are those of PyTorch in f32, with AdamW on every parameter.
"""

import json
import sys

import torch
import transformers

STEPS = 3
ORIGIN = f"PyTorch {torch.__version__}, transformers {transformers.__version__}, f32"
OPTIMIZER = {"kind": "adamw", "lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}

GPT2 = {"model_type": "gpt2", "vocab_size": 29, "n_positions": 16, "n_embd": 24, "n_head": 4, "n_layer": 2,
        "n_inner": None, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.0,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "initializer_range": 0.02, "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False, "architectures": ["GPT2LMHeadModel"], "torch_dtype": "float32"}
LLAMA = {"model_type": "llama", "vocab_size": 31, "max_position_embeddings": 32, "hidden_size": 48,
         "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 80,
         "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "rope_scaling": None,
         "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False, "attention_dropout": 0.0,
         "initializer_range": 0.02, "architectures": ["LlamaForCausalLM"], "torch_dtype": "float32"}
MISTRAL = {"model_type": "mistral", "vocab_size": 31, "max_position_embeddings": 32, "hidden_size": 32,
           "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8, "num_hidden_layers": 2,
           "intermediate_size": 56, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
           "sliding_window": 5, "tie_word_embeddings": False, "attention_dropout": 0.0, "initializer_range": 0.02,
           "architectures": ["MistralForCausalLM"], "torch_dtype": "float32"}
# Name, config, rows, tokens.
CASES = [
    ("gpt2", GPT2, 4, 12),
    ("gpt2_untied", {**GPT2, "tie_word_embeddings": False, "activation_function": "gelu", "n_inner": 40,
                     "scale_attn_by_inverse_layer_idx": True}, 2, 16),
    ("llama", LLAMA, 4, 16),
    ("llama_biases", {**LLAMA, "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 6,
                      "tie_word_embeddings": True}, 2, 10),
    ("mistral", MISTRAL, 2, 16),
]


def fill(name, shape, k):
    """How a parameter is filled: by its kind, as a trained one might look."""
    is_scale = len(shape) == 1 and name.endswith("weight")
    scale = 0.02 if name.endswith("bias") else 0.1
    return {"name": name, "shape": list(shape), "k": k, "scale": scale, "shift": 1.0 if is_scale else 0.0}


def values(spec):
    i = torch.arange(1, torch.Size(spec["shape"]).numel() + 1, dtype=torch.float64)
    flat = spec["shift"] + spec["scale"] * torch.sin(0.37 * i + spec["k"])
    return flat.to(torch.float32).reshape(spec["shape"])


def token_ids(vocab, rows, tokens):
    return ((7 * torch.arange(rows * tokens) + 3) % vocab).reshape(rows, tokens)


def build(config):
    config = transformers.AutoConfig.for_model(**config)
    config._attn_implementation = "eager"
    config.use_cache = False
    return transformers.AutoModelForCausalLM.from_config(config).to(torch.float32)


def measure(model, config, rows, tokens):
    """What huggingface.py compares with: logits, and the losses of training, which changes the model."""
    model.train()
    ids = token_ids(config["vocab_size"], rows, tokens)
    result = {"config": config, "rows": rows, "tokens": tokens, "optimizer": OPTIMIZER,
              "logits": model(input_ids=ids).logits.flatten().tolist(), "losses": []}
    optimizer = torch.optim.AdamW(model.parameters(), lr=OPTIMIZER["lr"], betas=OPTIMIZER["betas"],
                                  eps=OPTIMIZER["eps"], weight_decay=OPTIMIZER["weight_decay"])
    for _ in range(STEPS):
        loss = model(input_ids=ids, labels=ids).loss
        result["losses"].append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    result["losses"].append(model(input_ids=ids, labels=ids).loss.item())
    return result


def record(config, rows, tokens):
    model = build(config)
    specs = [fill(name, p.shape, k) for k, (name, p) in enumerate(model.named_parameters())]
    with torch.no_grad():
        for spec, p in zip(specs, model.parameters()):
            p.copy_(values(spec))
    return {"params": specs, **measure(model, config, rows, tokens)}


def write(name, result, folder):
    result["logits"] = [float(f"{x:.9g}") for x in result["logits"]]
    with open(f"{folder}/hf_{name}.json", "w") as f:
        json.dump({"case": name, "origin": ORIGIN, **result}, f)
        f.write("\n")


def main():
    torch.set_num_threads(1)
    for name, config, rows, tokens in CASES:
        result = record(config, rows, tokens)
        write(name, result, sys.argv[1])
        print(name, result["losses"])


if __name__ == "__main__":
    main()
