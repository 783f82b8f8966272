#!/usr/bin/env python3
"""Holds models of shoal-model against Hugging Face's transformers on this machine, with random weights.

usage: huggingface_torch.py --work FOLDER

Needs PyTorch and transformers. Each model is initialised and saved by transformers (the Llama in several files) and
loaded by the compiled program: equal logits, and equal losses in training. What training leaves is written back and
loaded by transformers, whose logits must then be those of the compiled program.
"""

import json
import os
import shutil
import sys

import torch
import transformers

from huggingface import compare
from huggingface_record import GPT2, LLAMA, build, measure, token_ids
from work_parser import WorkParser

# Name, config, rows, tokens, largest file in bytes.
CASES = [
    ("gpt2", {**GPT2, "vocab_size": 101, "initializer_range": 0.1}, 4, 16, "1GB"),
    ("llama", {**LLAMA, "vocab_size": 97, "initializer_range": 0.1}, 4, 32, "40KB"),
]


def run(name, config, rows, tokens, file_size, work):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    torch.manual_seed(11)
    model = build(config)
    model.save_pretrained(work, max_shard_size=file_size)
    files = sorted(f for f in os.listdir(work) if f.endswith((".safetensors", ".json")) and f.startswith("model"))
    checkpoint = f"{work}/model.safetensors" + (".index.json" if len(files) > 1 else "")
    # The config that transformers writes has fields beyond those it was made from.
    with open(f"{work}/config.json") as f:
        config = json.load(f)
    check, text, logits_of = compare(measure(model, config, rows, tokens), checkpoint, work)
    if "no use" in text:
        check.failures.append(f"tensors of the checkpoint have no use: {text}")

    back = f"{work}/back"
    os.makedirs(back)
    shutil.copy(f"{work}/config.json", back)
    shutil.copy(f"{work}/trained.safetensors", f"{back}/model.safetensors")
    loaded, info = transformers.AutoModelForCausalLM.from_pretrained(back, output_loading_info=True)
    for problem, names in info.items():
        if names:
            check.failures.append(f"transformers finds {problem}: {names}")
    with torch.no_grad():
        expected = loaded(input_ids=token_ids(config["vocab_size"], rows, tokens)).logits.flatten().tolist()
    check.tensor("logits of what was trained", logits_of(f"{work}/trained.safetensors")[0], {"values": expected})
    return check.fails(f"{name}, {len(files)} files, transformers {transformers.__version__}")


def main():
    work = os.path.abspath(WorkParser(__doc__).parse_args().work)
    torch.set_num_threads(1)
    failed = [run(*case, f"{work}/{case[0]}") for case in CASES]
    sys.exit(1 if any(failed) else 0)


if __name__ == "__main__":
    main()
