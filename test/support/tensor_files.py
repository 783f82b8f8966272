"""Small readers and writers of .npy and safetensors files, for tests and the demo.

Only the standard library is used: the product itself needs no Python, and the
machines that run its tests need no packages. Tensors are `Tensor(dtype, shape,
data)` with `data` an array.array in row-major order, and `dtype` one of f32, f64,
i16, i32, i64, u8.
"""

import array
import ast
import json
import struct
import sys
from collections import namedtuple

Tensor = namedtuple("Tensor", "dtype shape data")

# dtype -> array.array type code, .npy descr, safetensors name
_TYPES = {
    "f32": ("f", "<f4", "F32"),
    "f64": ("d", "<f8", "F64"),
    "i32": ("i", "<i4", "I32"),
    "i16": ("h", "<i2", "I16"),
    "i64": ("q", "<i8", "I64"),
    "u8": ("B", "|u1", "U8"),
}
_FROM_NPY = {npy: dtype for dtype, (_, npy, _) in _TYPES.items()}
_FROM_SAFETENSORS = {name: dtype for dtype, (_, _, name) in _TYPES.items()}


def tensor(dtype, shape, values):
    """A tensor of `shape` from a flat iterable of values in row-major order."""
    data = array.array(_TYPES[dtype][0], values)
    if len(data) != count(shape):
        raise ValueError(f"shape {shape} needs {count(shape)} values, got: {len(data)}")
    return Tensor(dtype, tuple(shape), data)


def count(shape):
    """The number of elements of a shape."""
    n = 1
    for size in shape:
        n *= size
    return n


def _little_endian(data):
    if sys.byteorder == "little":
        return data.tobytes()
    swapped = array.array(data.typecode, data)
    swapped.byteswap()
    return swapped.tobytes()


def _array(dtype, raw):
    data = array.array(_TYPES[dtype][0])
    data.frombytes(raw)
    if sys.byteorder != "little":
        data.byteswap()
    return data


def write_npy(path, t):
    """Writes a version 1.0 .npy file; the payload starts at a multiple of 64 bytes."""
    shape = "(" + "".join(f"{size}, " for size in t.shape).rstrip() + ")"
    header = f"{{'descr': '{_TYPES[t.dtype][1]}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
        f.write(_little_endian(t.data))


def read_npy(path):
    with open(path, "rb") as f:
        if f.read(6) != b"\x93NUMPY":
            raise ValueError(f"{path}: not an .npy file")
        major, _ = f.read(2)
        size = struct.unpack("<H", f.read(2))[0] if major == 1 else struct.unpack("<I", f.read(4))[0]
        header = ast.literal_eval(f.read(size).decode("latin1"))
        if header["fortran_order"]:
            raise ValueError(f"{path}: Fortran order is not supported")
        dtype = _FROM_NPY[header["descr"]]
        data = _array(dtype, f.read())
    if len(data) != count(header["shape"]):
        raise ValueError(f"{path}: shape {header['shape']} but {len(data)} values")
    return Tensor(dtype, tuple(header["shape"]), data)


def write_safetensors(path, tensors):
    """Writes a dict name -> Tensor."""
    header, offset = {}, 0
    for name, t in tensors.items():
        size = len(t.data) * t.data.itemsize
        header[name] = {
            "dtype": _TYPES[t.dtype][2],
            "shape": list(t.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(_little_endian(t.data))


def read_safetensors(path):
    """Reads a dict name -> Tensor."""
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        payload = f.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype = _FROM_SAFETENSORS[entry["dtype"]]
        begin, end = entry["data_offsets"]
        tensors[name] = tensor(dtype, entry["shape"], _array(dtype, payload[begin:end]))
    return tensors


def crc32c(data):
    """CRC-32C, bit by bit, as checkpoints write it."""
    state = 2**32 - 1
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return f"{state ^ (2**32 - 1):08x}"
