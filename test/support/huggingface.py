#!/usr/bin/env python3
"""Holds models of shoal-model against what Hugging Face's transformers computed for the same checkpoints.

usage: huggingface.py CASE.json --work FOLDER [--mesh MESH [--plan FLAG]...]

The case (huggingface_record.py) holds a config.json, how weights are filled, logits and losses. The weights are
written as a checkpoint: of gpt2 as its first one came, without the base model's prefix and with masks that no model
reads; of llama as two files with an index. Logits are compared element by element against their root mean square,
losses relatively, to 1e-5. What is trained is written back with the checkpoint's names and shapes.
"""

import json
import sys

import shoal
from golden import Checker, fill, optimizer_options
from metrics import read_losses
from tensor_files import count, read_npy, read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser


def weights(case):
    return {spec["name"]: tensor("f32", spec["shape"], fill(spec, count(spec["shape"]), spec["k"]))
            for spec in case["params"]}


def write_checkpoint(case, work):
    """Writes config.json and the weights; returns the path for --load."""
    with open(f"{work}/config.json", "w") as f:
        json.dump(case["config"], f)
    tensors = weights(case)
    names = sorted(tensors)
    path = f"{work}/model.safetensors"
    if case["case"] == "gpt2":
        bare = {name.removeprefix("transformer."): t for name, t in tensors.items()}
        n = case["config"]["n_positions"]
        for layer in range(case["config"]["n_layer"]):
            mask = [int(j <= i) for i in range(n) for j in range(n)]
            bare[f"h.{layer}.attn.bias"] = tensor("u8", (1, 1, n, n), mask)
        write_safetensors(path, bare)
    elif case["case"] == "llama":
        files = {name: f"model-{1 + i * 2 // len(names):05}-of-00002.safetensors" for i, name in enumerate(names)}
        for file in set(files.values()):
            write_safetensors(f"{work}/{file}", {name: tensors[name] for name in names if files[name] == file})
        path += ".index.json"
        with open(path, "w") as f:
            json.dump({"metadata": {"total_size": sum(4 * len(t.data) for t in tensors.values())},
                       "weight_map": files}, f)
    else:
        write_safetensors(path, tensors)
    return path


def write_data(case, work):
    """Token ids, and as labels the next of each; returns the flags of both."""
    rows, tokens = case["rows"], case["tokens"]
    ids = [(7 * i + 3) % case["config"]["vocab_size"] for i in range(rows * tokens)]
    labels = [-100 if i % tokens == tokens - 1 else ids[i + 1] for i in range(rows * tokens)]
    write_npy(f"{work}/ids.npy", tensor("i64", (rows, tokens), ids))
    write_npy(f"{work}/labels.npy", tensor("i64", (rows, tokens), labels))
    return ["--data", f"input_ids={work}/ids.npy"], ["--data", f"labels={work}/labels.npy"]


def compare(case, checkpoint, work, mesh="", flags=()):
    """Compiles the model for inference and for training, and runs both from the checkpoint. Returns the checker with
    its findings, what the inference said, and the two programs; the trained parameters are in trained.safetensors."""
    ids, labels = write_data(case, work)
    ranks = shoal.ranks_of(mesh)
    plan = (["--mesh", mesh] if mesh else []) + list(flags)
    model = f"{work}/model.mlir"
    family = "gpt2" if case["config"]["model_type"] == "gpt2" else "llama"
    shoal.call(["shoal-model", family, "--config", f"{work}/config.json", "--batch", str(case["rows"]), "--seq",
                str(case["tokens"]), "-o", model], shoal.COMPILE_LIMIT)
    check = Checker(1e-5)

    infer = shoal.shoalc(model, f"{work}/infer", "--mode", "infer", *plan)

    def logits_of(parameters):
        text = shoal.run(ranks, infer, *ids, "--load", parameters, "--output", f"logits={work}/logits.npy")
        logits = read_npy(f"{work}/logits.npy")
        if logits.shape != (case["rows"], case["tokens"], case["config"]["vocab_size"]):
            check.failures.append(f"logits have shape {logits.shape}")
        return logits, text

    logits, text = logits_of(checkpoint)
    check.tensor("logits", logits, {"values": case["logits"]})
    train = shoal.shoalc(model, f"{work}/train", *optimizer_options(case["optimizer"]), *plan)
    shoal.run(ranks, train, *ids, *labels, "--load", checkpoint, "--steps", str(len(case["losses"])), "--metrics",
              f"{work}/metrics.jsonl", "--dump-params", f"{work}/trained.safetensors")
    check.series("loss", read_losses(f"{work}/metrics.jsonl"), case["losses"])
    return check, text, logits_of


def main():
    parser = WorkParser(__doc__, "case")
    parser.add_argument("--mesh", default="")
    parser.add_argument("--plan", action="append", default=[])
    args = parser.parse_args()
    with open(args.case) as f:
        case = json.load(f)
    checkpoint = write_checkpoint(case, args.work)
    check, text, _ = compare(case, checkpoint, args.work, args.mesh, args.plan)
    if case["case"] == "gpt2" and "h.*.attn.bias (2)" not in text:
        check.failures.append(f"the masks are not noted: {text}")
    trained = read_safetensors(f"{args.work}/trained.safetensors")
    if {name: t.shape for name, t in trained.items()} != {name: t.shape for name, t in weights(case).items()}:
        check.failures.append("the parameters written have other names or shapes than the checkpoint")
    sys.exit(1 if check.fails(f"{case['case']} {args.mesh} {' '.join(args.plan)}".rstrip()) else 0)


if __name__ == "__main__":
    main()
