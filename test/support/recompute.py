#!/usr/bin/env python3
"""What recompute keeps and what it runs again, read off rank programs of GPT-2 and Llama with more layers and fewer.

usage: recompute.py --work FOLDER

Two programs that differ in layers alone tell what one layer adds: bytes of activations that live when the forward pass
ends, matrix products, attentions, collectives. They are compared with what the layers are made of. Nothing is run.
"""

import json
import re
import sys

import shoal
from work_parser import WorkParser

B, S, H, F, FLOAT = 4, 64, 64, 256, 4  # F: features between the two products
HEADS, KV = 8, 4
GPT2 = {"model_type": "gpt2", "vocab_size": 96, "n_positions": S, "n_embd": H, "n_head": HEADS, "n_inner": F,
        "attn_pdrop": 0.0, "embd_pdrop": 0.1, "resid_pdrop": 0.1}
LLAMA = {"model_type": "llama", "vocab_size": 96, "max_position_embeddings": S, "hidden_size": H,
         "intermediate_size": F, "num_attention_heads": HEADS, "num_key_value_heads": KV, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "tie_word_embeddings": False}
LAYERS = {"gpt2": "n_layer", "llama": "num_hidden_layers"}

# Of a layer: its products, the widths of their results that backward reads when it computes the rest again, and how many it
# runs again where nothing else is kept. The last one's result only enters the residual sum.
PRODUCTS = {"gpt2": 4, "llama": 7}
NUMBERED = {"gpt2": 2, "llama": 0}  # ops of dropout: backward draws from the same step and id, one i64
KEPT = {"gpt2": 3 * H + H + F, "llama": H + 2 * H * KV // HEADS + H + 2 * F}


def measure(work, kind, layers, options):
    """Counts of one program, of its first rank."""
    base = f"{work}/{kind}-{layers}"
    with open(f"{base}.json", "w") as f:
        json.dump((GPT2 if kind == "gpt2" else LLAMA) | {LAYERS[kind]: layers}, f)
    shoal.call(["shoal-model", kind, "--config", f"{base}.json", "--batch", str(B), "--seq", str(S), "-o", f"{base}.mlir"],
               shoal.COMPILE_LIMIT)
    shoal.call(["shoalc", f"{base}.mlir", "--emit", "exec", "-o", f"{base}.exec", "--report", f"{base}.report.json", *options],
               shoal.COMPILE_LIMIT)
    with open(f"{base}.exec") as f:
        text = f.read()
    text = text[text.index("exec.program"):].split("exec.program @evaluation")[0]
    rank = shoal.ranks_of_report(f"{base}.report.json")[0]
    counts = {"bytes": rank["bytes"]["activations"], "products": len(re.findall(r"exec\.gemm\b", text)),
              "attentions": len(re.findall(r"exec\.attention\b", text))}
    for line in rank["collectives"]:
        counts[f"{line['kind']} over {','.join(line['axes'])}"] = line["count"]
    return counts


def per_layer(work, kind, options):
    few, many = (measure(work, kind, layers, options) for layers in (3, 6))
    return {name: (many[name] - few.get(name, 0)) / 3 for name in many}


def main():
    args = WorkParser(__doc__).parse_args()
    failed = False
    sequence = ["--mesh", "tensor=2", "--tensor-parallel", "--sequence-parallel"]
    for kind in PRODUCTS:
        for devices, mesh in ((1, []), (2, sequence)):
            stream = B * S * FLOAT / devices  # of one number per token
            base = per_layer(args.work, kind, mesh)
            for mode, kept, repeated in (("selective", H + KEPT[kind], 0), ("full", H, PRODUCTS[kind] - 1)):
                got = per_layer(args.work, kind, [*mesh, "--recompute", mode])
                # Sums over devices behind the second product from the end are summed again with it; what is gathered for a
                # product that is run again serves its weight's gradient, too.
                expected = base | {"bytes": stream * kept + 8 * NUMBERED[kind], "products": base["products"] + repeated,
                                   "attentions": base["attentions"] + 1}
                if mode == "full" and devices > 1:
                    expected["reduce_scatter over tensor"] += 1
                wrong = {name: (got.get(name), value) for name, value in expected.items() if got.get(name) != value}
                wrong |= {name: (value, None) for name, value in got.items() if name not in expected}
                print(f"{kind} on {devices}, {mode}: {base['bytes'] / stream:.0f} -> {got['bytes'] / stream:.0f} numbers per "
                      f"token and layer" + "".join(f"; {n}: got {g}, expected {e}" for n, (g, e) in wrong.items()))
                failed |= bool(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
