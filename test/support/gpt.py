#!/usr/bin/env python3
"""Trains a small byte-level GPT on one rank and on data=2,tensor=2 with sequence parallelism, and lets both generate text.

usage: gpt.py FOLDER

Losses must fall and agree between the plans; what an inference program generates must be what its logits say: each
token is drawn again here from the logits that the same program writes for the window of tokens before it. There
the window is filled up with other tokens than --generate uses, which no text may depend on.
"""

import json
import math
import os
import subprocess
import sys

import shoal
from metrics import largest_relative_difference, read_evaluations, read_losses
from philox import MASK32, philox, stream_key
from tensor_files import read_npy, tensor, write_npy

CONFIG = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 16, "n_embd": 24, "n_head": 3, "n_layer": 2,
          "initializer_range": 0.1, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
SEQ, BATCH, STEPS = CONFIG["n_positions"], 4, 60
PLANS = {"one": (1, []),
         "four": (4, ["--mesh", "data=2,tensor=2", "--tensor-parallel", "--sequence-parallel"])}
PROMPT = "the c"


def check(holds, what):
    if not holds:
        sys.exit(what)


def text():
    """Some sentences of two kinds, so that there is something to learn in a few steps."""
    animals, things = ("cat", "dog", "cow", "hen"), ("mat", "hill", "barn", "log")
    return "".join(f"the {animals[i * i % 4]} sat on the {things[(i + i // 4) % 4]}. " for i in range(80))


def make_data():
    with open("text", "w") as f:
        f.write(text())
    said = shoal.call(["shoal-data", "bytes", "text", "--seq", str(SEQ), "-o", "data", "--val-every", "8"], 60)
    tokens = text().encode()
    samples = [tokens[at : at + SEQ + 1] for at in range(0, len(tokens) - 1, SEQ)]
    for split, validates in (("train", False), ("val", True)):
        chosen = [s for i, s in enumerate(samples) if (i % 8 == 7) == validates]
        check(f"{len(chosen)} samples of {SEQ} tokens" in said, f"samples: {said}")
        ids, labels = b"", []
        for sample in chosen:
            ids += sample[:SEQ].ljust(SEQ, b"\n")
            labels += (list(sample[1:]) + [-100] * SEQ)[:SEQ]
        written = read_npy(f"data/{split}_input_ids.npy")
        check(written.shape == (len(chosen), SEQ) and written.data.tobytes() == ids, f"{split}: ids")
        written = read_npy(f"data/{split}_labels.npy")
        check(written.shape == (len(chosen), SEQ) and list(written.data) == labels, f"{split}: labels")


def data_options(flag, split):
    return [word for name in ("input_ids", "labels") for word in (flag, f"{name}=data/{split}_{name}.npy")]


def train(dtype):
    """Losses of the plans; leaves PLAN-DTYPE.safetensors."""
    losses = {}
    for plan, (ranks, flags) in PLANS.items():
        program = shoal.shoalc("gpt.mlir", f"{plan}-{dtype}", "--optimizer", "adamw", "--lr", "0.01", "--dtype", dtype,
                               *flags)
        shoal.run(ranks, program, *data_options("--data", "train"), *data_options("--eval-data", "val"), "--steps",
                  str(STEPS), "--shuffle", "--seed", "1", "--metrics", f"{program}.jsonl", "--dump-params",
                  f"{program}.safetensors")
        losses[plan] = read_losses(f"{program}.jsonl")
        check(len(losses[plan]) == STEPS, f"{program}: {len(losses[plan])} steps")
        last = read_evaluations(f"{program}.jsonl")[-1]["eval_loss"]
        check(abs(losses[plan][0] - math.log(256)) < 0.5 and last < 2.2,
              f"{program}: the loss must fall from some {math.log(256):.2f} below 2.2, got: {losses[plan][0]} and {last}")
    return losses


def generate(program, ranks, *options):
    """What --generate prints, without the line end that closes it."""
    command = ["shoal-run", "-n", str(ranks), f"./{program}", "--no-progress", "--generate", "30", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=shoal.RUN_LIMIT)
    check(done.returncode == 0, f"{command}: {done.stderr.decode(errors='replace')}")
    check(done.stdout.endswith(b"\n"), f"{command}: no line end")
    return done.stdout[:-1]


def logits_before(program, tokens, begin):
    """For each token from `begin` on the logits of the program that it was drawn from: row by row the window before it,
    filled up with tokens that --generate does not use."""
    rows = []
    for at in range(begin, len(tokens)):
        window = tokens[max(0, at - SEQ) : at]
        rows += list(window) + [(7 * i + 65) % 256 for i in range(SEQ - len(window))]
    count = len(tokens) - begin
    write_npy("windows.npy", tensor("i64", (count, SEQ), rows))
    shoal.run(1, program, "--data", "input_ids=windows.npy", "--load", "one-f64.safetensors", "--output",
              "logits=logits.npy")
    logits = read_npy("logits.npy")
    places = [min(at, SEQ) - 1 for at in range(begin, len(tokens))]
    return [logits.data[(r * SEQ + p) * 256 : (r * SEQ + p + 1) * 256] for r, p in enumerate(places)]


def draw(logits, temperature, top_k, seed, position, sample):
    """The same rule once more: softmax over the top_k largest, inverted at a number of Philox's."""
    key = stream_key(seed, "generate")
    words = philox((key & MASK32, key >> 32), (position, 0, sample, 0))
    u = ((words[0] << 32 | words[1]) >> 11) / 2**53
    kept = sorted(sorted(range(256), key=lambda token: (-logits[token], token))[:top_k])
    largest = max(logits)
    weights = [math.exp((logits[token] - largest) / temperature) for token in kept]
    target, sum_ = u * math.fsum(weights), 0.0
    for token, weight in zip(kept, weights):
        sum_ += weight
        if sum_ > target:
            return token
    return kept[-1]


def check_reports():
    """Each token is a run of the program, and one more is made to see that what fills the window does not matter: what
    is promised for a step is what all of them count."""
    ranks, flags = PLANS["four"]
    shoal.shoalc("gpt.mlir", "reported", "--mode", "infer", "--report", "promise.json", *flags)
    shoal.run(ranks, "reported", "--generate", "3", "--load", "one-f64.safetensors", "--temperature", "0", "--prompt", PROMPT,
              "--metrics", "steps.jsonl", "--report", "counted.json", "--output", "tokens=tokens.npy")
    with open("steps.jsonl") as f:
        check(len(f.readlines()) == 4, "steps of --generate 3")
    check(shoal.ranks_of_report("promise.json") == shoal.ranks_of_report("counted.json"), "reports differ")


def check_meshes(greedy):
    """Nothing divides, devices are permuted: the same text."""
    with open("gpt.mlir") as f:
        model = f.read()
    for name, mesh, flags in (("uneven", '["data"=3]', []),
                              ("permuted", '["tensor"=3], device_ids=[2, 0, 1]', ["--tensor-parallel", "--sequence-parallel"])):
        with open(f"{name}.mlir", "w") as f:
            f.write(model.replace("module {", f"module {{\ndist.mesh @mesh <{mesh}>", 1))
        shoal.shoalc(f"{name}.mlir", name, "--mode", "infer", "--dtype", "f64", *flags)
        text = generate(name, 3, "--load", "one-f64.safetensors", "--prompt", PROMPT, "--temperature", "0")
        check(text == greedy, f"{mesh}: {text}")


def check_generation():
    for plan, (_, flags) in PLANS.items():
        shoal.shoalc("gpt.mlir", f"infer-{plan}", "--mode", "infer", "--dtype", "f64", *flags)
    load = ["--load", "one-f64.safetensors", "--prompt", PROMPT]

    def on_both(*options):
        texts = [generate(f"infer-{plan}", ranks, *load, *options) for plan, (ranks, _) in PLANS.items()]
        check(texts[0] == texts[1], f"{options}: the plans print {texts}")
        return texts[0]

    # The largest logit, beyond the window's end.
    greedy = on_both("--temperature", "0")
    check(len(greedy) == len(PROMPT) + 30 and greedy.startswith(PROMPT.encode()), f"text: {greedy}")
    check(b"sat on the " in greedy[len(PROMPT) :], f"nothing was learned: {greedy}")
    for at, logits in enumerate(logits_before("infer-one", greedy, len(PROMPT)), len(PROMPT)):
        best = max(range(256), key=lambda token: (logits[token], -token))
        check(best == greedy[at], f"token {at} is {greedy[at]}, the largest logit is that of {best}")

    # Draws, of which a sample's do not depend on how many there are.
    drawn = on_both("--temperature", "0.9", "--top-k", "5", "--seed", "3")
    check(drawn != greedy, "nothing is drawn")
    for at, logits in enumerate(logits_before("infer-one", drawn, len(PROMPT)), len(PROMPT)):
        expected = draw(logits, 0.9, 5, 3, at, 0)
        check(expected == drawn[at], f"token {at} is {drawn[at]}, expected {expected}")
    three = on_both("--temperature", "0.9", "--top-k", "5", "--seed", "3", "--samples", "3").split(b"\n---\n")
    check(len(three) == 3 and three[0] == drawn and len(set(three)) == 3, f"samples: {three}")
    check(on_both("--temperature", "0.9", "--top-k", "5", "--seed", "4") != drawn, "the seed changes nothing")

    # Ids in files, there and back.
    with open("prompt.txt", "w") as f:
        f.write(PROMPT)
    write_npy("prompt.npy", tensor("u8", (len(PROMPT),), PROMPT.encode()))
    load = ["--load", "one-f64.safetensors", "--temperature", "0"]
    check(generate("infer-one", 1, *load, "--prompt-file", "prompt.txt") == greedy, "a prompt of a text file")
    check(generate("infer-one", 1, *load, "--prompt-file", "prompt.npy") == greedy, "a prompt of ids")
    shoal.run(4, "infer-four", "--generate", "30", *load, "--prompt", PROMPT, "--output", "tokens=tokens.npy")
    tokens = read_npy("tokens.npy")
    check(tokens.shape == (1, len(greedy)) and bytes(list(tokens.data)) == greedy, f"tokens: {tokens}")
    check(shoal.call(["shoal-data", "text", "tokens.npy"], 60) == greedy.decode(errors="replace"), "text of tokens")
    check_meshes(greedy)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    os.chdir(sys.argv[1])
    make_data()
    with open("config.json", "w") as f:
        json.dump(CONFIG, f)
    shoal.call(["shoal-model", "gpt2", "--config", "config.json", "--batch", str(BATCH), "--seq", str(SEQ), "-o",
                "gpt.mlir"], 60)
    for dtype, tolerance in (("f32", 1e-5), ("f64", 1e-9)):
        losses = train(dtype)
        difference = largest_relative_difference(losses["four"], losses["one"])
        print(f"{dtype}: largest relative difference of {STEPS} losses {difference:.2g}, bound {tolerance:g}")
        check(difference <= tolerance, "the plans' losses differ")
    check_generation()
    check_reports()


if __name__ == "__main__":
    main()
