#!/usr/bin/env python3
"""Gives compiled programs the inputs and outputs of a table, and checks exit code, the one line of error, and
that no file was lost or left behind.

usage: hostile.py FOLDER --data EXAMPLES

FOLDER holds the digits example compiled as digits (SGD, one rank), adam (one rank), digits2 (two ranks) and infer.
"""

import json
import os
import resource
import struct
import subprocess
import sys

import tensor_files

LIMIT = 120


def npy(text, data=b"", version=1, length=None):
    """A .npy file with the header `text`, which may lie about everything."""
    header = text.encode("latin1")
    size = struct.pack("<H" if version == 1 else "<I", len(header) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


def header(descr="<f4", shape="(32, 64)", order="False"):
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n"


def safetensors(entries, data=b"", length=None):
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


class Table:
    def __init__(self, folder, examples):
        self.folder, self.examples, self.rows, self.faults = folder, examples, 0, []
        os.chdir(folder)
        for name in ("x", "y"):
            self.file(f"{name}.npy", open(os.path.join(examples, f"train_{name}.npy"), "rb").read())

    def file(self, name, data):
        with open(name, "wb") as f:
            f.write(data)
        return name

    launcher = ["shoal-run", "-n", "1"]

    def command(self, words, launched=False):
        """Programs by name; --data x and y of the example unless the row gives its own. A program that fails in
        the middle stops all ranks, which only the launcher tells in one line."""
        words, launcher = list(words), []
        if words[0] in ("digits", "adam", "digits2", "infer"):
            trains = words[0] != "infer"
            words[0] = "./" + words[0]
            launcher = self.launcher if launched else []
            given = {word.split(b"=" if isinstance(word, bytes) else "=")[0] for word in words}
            if not any(word == "--data" for word in words):
                words += ["--data", "x=x.npy"] + (["--data", "y=y.npy"] if trains else [])
            elif "x" in given and "y" not in given and trains:
                words += ["--data", "y=y.npy"]
            if trains and not any(word in ("--steps", "--epochs") for word in words):
                words += ["--steps", "2"]
        return launcher + words

    def row(self, name, words, code, line, keep=None, file_limit=None, lines=1):
        """`keep`: a file that must stay as it is."""
        self.rows += 1
        before = {entry: os.path.getsize(entry) for entry in os.listdir(".")}
        kept = open(keep, "rb").read() if keep else None

        def limit():
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        command = self.command(words, launched=code == 1)
        if file_limit is not None and command[:3] == self.launcher:
            # The launcher itself writes larger files, and so do Open MPI's shared segments.
            shell = f'ulimit -f {file_limit // 1024}; exec "$@"'
            command = self.launcher + ["--mca", "btl", "self", "bash", "-c", shell, "bash"] + command[3:]
            file_limit = None
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                                  preexec_fn=limit)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{name}: no end within {LIMIT} s: {command}")
            return
        errors = done.stderr.decode(errors="replace").splitlines()
        errors = [text for text in errors if not text.startswith("note: ")]
        if done.returncode != code or len(errors) != lines or line not in errors[0]:
            self.faults.append(f"{name}: exit code {done.returncode}, {len(errors)} lines, expected {code} and "
                               f"'{line}': {errors[:3]}")
        if keep and open(keep, "rb").read() != kept:
            self.faults.append(f"{name}: {keep} was changed")
        left = set(os.listdir(".")) - set(before)
        if left:
            self.faults.append(f"{name}: left behind: {sorted(left)}")
            for entry in left:
                os.unlink(entry)


def data_files(t):
    """What stands behind --data."""
    rows = [
        ("truncated magic", b"\x93NUM", "is not a .npy file"),
        ("empty file", b"", "is not a .npy file"),
        ("version", npy(header(), version=9), "version must be 1 to 3, got: 9"),
        ("header cut off", npy(header(), length=60000), "is cut off"),
        ("huge header", npy(header(), version=2, length=2**32 - 1), "4294967295 bytes is cut off"),
        ("no dictionary", npy("import os"), "bad .npy header"),
        ("unknown key", npy("{'descr': '<f4', 'color': 1, }"), "unexpected key 'color'"),
        ("key twice", npy("{'descr': '<f4', 'descr': '<f4', }"), "unexpected key 'descr'"),
        ("missing key", npy("{'descr': '<f4', 'fortran_order': False, }"), "expected the keys"),
        ("negative size", npy(header(shape="(-1, 64)")), "expected a dimension"),
        ("size of 65 bits", npy(header(shape="(18446744073709551616, 64)")), "does not fit 64 bits"),
        ("product overflows", npy(header(shape="(4611686018427387904, 64)")), "does not fit 64 bits"),
        ("too few bytes", npy(header(), bytes(100)), "takes 8192 bytes of data, got: 100"),
        ("too many bytes", npy(header(), bytes(8193)), "takes 8192 bytes of data, got: 8193"),
        ("many dimensions", npy(header(shape="(" + "1, " * 40 + ")")), "more than 32 dimensions"),
        ("big-endian", npy(header(">f4"), bytes(8192)), "must be little-endian, got: '>f4'"),
        ("Fortran order", npy(header(order="True"), bytes(8192)), "must be in C order"),
        ("object type", npy(header("|O"), bytes(8192)), "must be a bool, integer or float, got: '|O'"),
        ("rank", npy(header(shape="(32, 8, 8)"), bytes(8192)), "has shape [32, 8, 8], but input 'x' expects [rows, 64]"),
        ("features", npy(header(shape="(32, 63)"), bytes(32 * 63 * 4)), "has shape [32, 63], but input 'x' expects"),
        ("other rows", npy(header(shape="(31, 64)"), bytes(31 * 64 * 4)), "rows, but"),
        ("control characters", npy("{'de\x1b[31m\ncr': 1}"), "unexpected key 'de\\x1b[31m\\x0acr'"),
        ("a very long line", npy("{'" + "k" * 30000 + "': 1}"), " ... "),
    ]
    for name, data, line in rows:
        t.row(f".npy: {name}", ["digits", "--data", f"x={t.file('bad.npy', data)}"], 2, line)
    t.file("floats.npy", npy(header(shape="(1797,)"), bytes(1797 * 4)))
    t.row("floats for labels", ["digits", "--data", "x=x.npy", "--data", "y=floats.npy"], 2,
          "holds f32, but input 'y' expects")
    t.row("a directory", ["digits", "--data", "x=."], 2, "must be a regular file, got: a directory")
    t.row("a device", ["digits", "--data", "x=/dev/zero"], 2, "must be a regular file, got: a device")
    if not os.path.exists("pipe"):
        os.mkfifo("pipe")
    t.row("a pipe", ["digits", "--data", "x=pipe"], 2, "must be a regular file, got: a pipe")
    t.row("no file", ["digits", "--data", "x=none.npy"], 2, "none.npy: cannot be opened: No such file")
    t.row("a name that is no UTF-8", ["digits", "--data", b"x=\xff\xfe.npy"], 2, "cannot be opened")
    t.row("a name with a line end", ["digits", "--data", "x=a\nb"], 2, "a\\x0ab: cannot be opened")


def parameter_files(t):
    """What stands behind --load."""
    subprocess.run(t.command(["adam", "--dump-params", "good.safetensors"]), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=LIMIT)
    good = tensor_files.read_safetensors("good.safetensors")
    rows = [
        ("empty file", b"", "is not a safetensors file: 0 bytes"),
        ("lying length", safetensors({}, length=2**63), "a header of 9223372036854775808 bytes"),
        ("longer than the file", safetensors({}, length=3), "a header of 3 bytes in a file of 10"),
        ("no JSON", safetensors(b"{]"), "is not a JSON object"),
        ("NaN", safetensors(b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 0]}}'), "is not a JSON object"),
        ("nested deeply", safetensors(b"[" * 100000), "is nested more than 8 deep"),
        ("invalid UTF-8", safetensors(b'{"\xff": 1}'), "is not a JSON object"),
        ("name twice", safetensors(b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "a": 1}', b"\0"),
         'the safetensors header holds "a" twice'),
        ("negative offset", safetensors({"a": tensor("F32", [1], -4, 0)}), "data_offsets must be integers of at least 0"),
        ("offsets backwards", safetensors({"a": tensor("F32", [1], 4, 0)}, bytes(4)), "tensor 'a': F32[1] takes 4"),
        ("outside of the file", safetensors({"a": tensor("F32", [1], 4, 8)}, bytes(4)), "tensor 'a': F32[1] takes 4"),
        ("overlapping", safetensors({"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 0, 4)}, bytes(4)),
         "tensors must follow each other"),
        ("a hole", safetensors({"a": tensor("F32", [1], 4, 8)}, bytes(8)), "tensors must follow each other"),
        ("overflow", safetensors({"a": tensor("F64", [2**63, 2**63], 0, 0)}), "does not fit 64 bits"),
        ("a fraction", safetensors({"a": tensor("F32", [1.5], 0, 6)}, bytes(6)), "dimensions must be integers"),
        ("unknown type", safetensors({"a": tensor("F8_E4M3", [1], 0, 1)}, bytes(1)), "unknown dtype 'F8_E4M3'"),
        ("parameters missing", safetensors({}), "is missing, expected shape"),
    ]
    for name, data, line in rows:
        t.row(f"safetensors: {name}", ["digits", "--load", t.file("bad.safetensors", data)], 2, line)
    weight = next(name for name in good if len(good[name].shape) == 2)
    integers = dict(good)
    integers[weight] = tensor_files.tensor("i64", good[weight].shape, [0] * len(good[weight].data))
    tensor_files.write_safetensors("bad.safetensors", integers)
    t.row("integers for floats", ["digits", "--load", "bad.safetensors"], 2, f"'{weight}' holds i64, expected f32")
    turned = dict(good)
    turned[weight] = good[weight]._replace(shape=good[weight].shape[::-1])
    tensor_files.write_safetensors("bad.safetensors", {**good, f"{weight}.m": good[weight]})
    t.row("a part of the state", ["adam", "--load", "bad.safetensors"], 2, "expected all of the optimizer's state or none")
    tensor_files.write_safetensors("bad.safetensors", turned)
    t.row("another shape", ["digits", "--load", "bad.safetensors"], 2, f"'{weight}' has shape")
    t.file("data.safetensors", safetensors({"a": tensor("F32", [1], 0, 4)}, bytes(4)))
    t.file("text.safetensors", b"no tensors")
    rows = [
        ("no JSON", b"{]", "the index of safetensors files is not a JSON object"),
        ("nested deeply", b"[" * 100000, "is nested more than 8 deep"),
        ("no map", b"{}", 'must hold an object "weight_map"'),
        ("name twice", b'{"weight_map": {"a": "data.safetensors", "a": "data.safetensors"}}', 'holds "a" twice'),
        ("no name", b'{"weight_map": {"a": 1}}', "tensor 'a': expected the name of a file"),
        ("another folder", b'{"weight_map": {"a": "../x/data.safetensors"}}', "beside the index, got: '../x/data"),
        ("a name with a zero", b'{"weight_map": {"a": "data\\u0000"}}', "expected the name of a file beside the index"),
        ("no file", b'{"weight_map": {"a": "none.safetensors"}}', "none.safetensors: cannot be opened"),
        ("no tensors", b'{"weight_map": {"a": "text.safetensors"}}', "text.safetensors: is not a safetensors file"),
        ("a tensor that is not there", b'{"weight_map": {"a": "data.safetensors", "b": "data.safetensors"}}',
         "data.safetensors: lacks tensor 'b', which bad.json says is there"),
        ("a tensor that is not named", b'{"weight_map": {"b": "data.safetensors"}}',
         "data.safetensors: holds tensor 'a', which bad.json says is in no file"),
    ]
    for name, data, line in rows:
        t.row(f"index: {name}", ["digits", "--load", t.file("bad.json", data)], 2, line)
    for name in ("data.safetensors", "text.safetensors", "bad.json"):
        os.unlink(name)
    t.row("a directory", ["digits", "--load", "."], 2, "must be a regular file, got: a directory")


def outputs(t):
    """What cannot be written, and what must survive that."""
    t.file("old", b"old")
    big = 32768  # bytes; less than the parameters take, more than the program that is loaded
    for flag in ("--dump-params", "--dump-grads"):
        t.row(f"{flag}: size limit", ["digits", flag, "old"], 1, "old: write failed: File too large", "old", big)
        t.row(f"{flag}: new file, size limit", ["digits", flag, "new"], 1, "new: write failed: File too large",
              file_limit=big)
    flags = [("digits", flag, "") for flag in ("--dump-params", "--dump-grads", "--report", "--metrics", "--trace")]
    for program, flag, name in flags + [("infer", "--output", "logits=")]:
        def row(what, path, code, line, *words, keep=None):
            t.row(f"{flag}: {what}", [program, flag, name + path, *words], code, line, keep)
        row("full disk", "/dev/full", 1, "/dev/full: write failed: No space left on device")
        row("a directory", ".", 2, "irectory")
        row("no folder", "none/file", 2, "cannot be written: No such file or directory")
        row("wrong data first", "old", 2, "none.npy", "--data", "x=none.npy", keep="old")
        row("new file, wrong data first", "new", 2, "none", "--load", "none")
    t.row("an existing name as a folder", ["digits", "--report", "old/file"], 2, "Not a directory", "old")


def command_lines(t):
    t.row("no data", ["digits", "--data", "y=y.npy"], 2, "input 'x' [32, 64] needs --data x=FILE.npy")
    t.row("unknown data", ["digits", "--data", "z=x.npy"], 2, "the program has no input 'z'")
    t.row("data without a file", ["digits", "--data", "x="], 2, "--data expects NAME=FILE, got: 'x='")
    t.row("data twice", ["digits", "--data", "x=x.npy", "--data", "x=x.npy"], 2, "names 'x' twice")
    t.row("unknown flag", ["digits", "--bogus"], 2, "error: unknown argument, got: --bogus; see --help")
    t.row("unknown words", ["digits", "b c"], 2, "error: unknown argument, got: 'b c'; see --help")
    t.row("unknown flags", ["digits", "--bogus", "3"], 2, "error: unknown arguments, got: --bogus 3; see --help")
    t.row("steps", ["digits", "--steps", "-1"], 2, "--steps must be an integer of at least 0, got: '-1'")
    t.row("steps of 65 bits", ["digits", "--steps", "18446744073709551616"], 2, "--steps must be an integer")
    t.row("threads", ["digits", "--threads", "0"], 2, "--threads must be an integer of at least 1")
    t.row("ranks", ["digits2"], 2, "this program runs on 2 ranks (mesh data=2), got: 1; start it with: shoal-run -n 2")
    t.row("launcher: unknown option", ["shoal-run", "--bogus"], 2, "error: ")
    t.row("launcher: an option that mpirun does not know", ["shoal-run", "-n", "1", "--bogus", "./digits"], 2,
          'error: mpirun: unknown option "--bogus"')
    t.row("launcher: no program", ["shoal-run", "-n", "1", "./none"], 2, "./none: cannot be executed")
    t.row("launcher: a directory", ["shoal-run", "-n", "1", "./"], 2, "./: cannot be executed: Is a directory")
    t.row("launcher: no ranks", ["shoal-run", "-n", "0", "./digits"], 2, "expects a number of ranks of at least 1")


def compiler(t):
    model = os.path.join(t.examples, "digits.mlir")
    t.file("old", b"old")
    os.makedirs("folder.html", exist_ok=True)
    for emit in ("exec", "llvm", "obj", "exe"):
        t.row(f"shoalc --emit {emit}: size limit", ["shoalc", model, "--emit", emit, "-o", "old"], 1,
              "File too large", "old", file_limit=2048)
        for path, line in (".", "Is a directory"), ("none/file", "No such file or directory"), ("old/file", "Not a directory"):
            t.row(f"shoalc --emit {emit}: {path}", ["shoalc", model, "--emit", emit, "-o", path], 2,
                  f"cannot write '{path}': {line}")
        for path, line in (("folder.html", "Is a directory"), ("none/file.json", "No such file or directory"),
                           ("old/file.html", "Not a directory")):
            t.row(f"shoalc --emit {emit}: report in {path}",
                  ["shoalc", model, "--emit", emit, "-o", "out", "--report", path], 2, f"cannot write '{path}': {line}")
    t.row("shoalc: full disk", ["shoalc", model, "--emit", "exec", "-o", "/dev/full"], 1,
          "cannot write '/dev/full': No space left on device")
    for report in "full.json", "full.html":
        if not os.path.islink(report):
            os.symlink("/dev/full", report)
        t.row(f"shoalc: {report} on a full disk",
              ["shoalc", model, "--emit", "exec", "-o", "/dev/null", "--report", report], 1, f"cannot write '{report}'")
    rows = [
        ("empty", b"", "holds no step function"),
        ("zeros", bytes(4096), "error: "),
        ("not UTF-8", b"\xff\xfe\xfd", "error: "),
        ("bytecode", b"ML\xefR" + bytes(100), "must be MLIR text, got: bytecode"),
        ("half a function", b"func.func @f(%x: tensor<4xf32>", "error: "),
        ("unknown op", b"func.func @f() { nn.frobnicate }", "nn.frobnicate"),
        ("unknown dialect", b'module { "a.b"() : () -> () }', "unregistered dialect"),
        ("long line", b"// " + b"x" * 10_000_000, "holds no step function"),
        ("long name", b"func.func @" + b"f" * 1_000_000 + b"(", "error: "),
    ]
    for name, data, line in rows:
        t.row(f"shoalc: {name}", ["shoalc", t.file("bad.mlir", data), "-o", "out"], 2, line)
    t.row("shoalc: a device", ["shoalc", "/dev/zero", "-o", "out"], 2, "must be a file or a pipe, got: a device")
    t.row("shoalc: a directory", ["shoalc", ".", "-o", "out"], 2, "must be a file or a pipe, got: a directory")
    t.row("shoalc: unknown axis", ["shoalc", model, "-o", "out", "--mesh", "rows=2"], 2,
          "--mesh: axis must be one of replica, data, tensor, pipe, context, ulysses, got: 'rows'")
    t.row("shoalc: axis without use", ["shoalc", model, "-o", "out", "--mesh", "data=2,tensor=3"], 2,
          "error: --mesh: mesh axis 'tensor' of size 3 shards nothing")
    t.row("shoalc: the runtime is a device", ["shoalc", model, "-o", "out", "--runtime", "/dev/zero"], 2, "/dev/zero")


def shrinking_data(t):
    """A data file that is cut off while the program reads it, at a page and inside of one."""
    t.rows += 2
    for size in (4096, 200000):
        t.file("shrinks.npy", open("x.npy", "rb").read())
        command = t.command(["digits", "--data", "x=shrinks.npy", "--steps", "100000000", "--log-every", "100"],
                            launched=True)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.stdout.readline()  # it steps
        os.truncate("shrinks.npy", size)
        try:
            _, errors = running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            running.kill()
            t.faults.append(f"data cut off to {size} bytes: no end")
            continue
        if running.returncode != 1 or errors.count(b"\n") != 1 or b"shrinks.npy: " not in errors:
            t.faults.append(f"data cut off to {size} bytes: exit code {running.returncode}, {errors}")


def main():
    table = Table(sys.argv[1], os.path.abspath(sys.argv[3]))
    for part in (data_files, parameter_files, outputs, command_lines, compiler, shrinking_data):
        part(table)
    print(f"{table.rows} hostile inputs and outputs, {len(table.faults)} faults")
    for fault in table.faults:
        print(fault)
    sys.exit(1 if table.faults else 0)


if __name__ == "__main__":
    main()
