"""Philox 4x32-10 (Salmon et al. 2011), and the masks that nn.dropout draws with it: a second writing of both, against
which programs are tested."""

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def philox(key, counter):
    """Four words from two words of key and four of counter."""
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK32
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def stream_key(seed, name):
    """FNV-1a of the name, mixed with the seed by splitmix64's finalizer."""
    z = 0xCBF29CE484222325
    for byte in name.encode():
        z = (z ^ byte) * 0x100000001B3 & MASK64
    z = (z + (seed + 1) * 0x9E3779B97F4A7C15) & MASK64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def dropout_factors(seed, step, op_id, rate, count):
    """What dropout multiplies each element of a whole tensor by, row-major."""
    key = stream_key(seed, "seed")
    words = (key & MASK32, key >> 32)
    threshold = int(rate * 2**32)
    return [1 / (1 - rate) if philox(words, (i & MASK32, i >> 32, op_id, step & MASK32))[0] >= threshold else 0.0
            for i in range(count)]
