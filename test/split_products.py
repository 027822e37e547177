"""Products of f32 that a tensor core multiplies by narrower floats: specs, operands, errors."""

import numpy as np

from tilewright.compiler.pipeline import parse_pipeline
from tilewright.compiler.spec import MatmulSpec

LOADS = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,persistence"
PREFIXES = tuple(call.name for call in parse_pipeline(f"tiling,{LOADS}"))
MAJORS = ("kk", "mk", "kn", "mn")


def spec_of(name, m, n, k, **more):
    """A product of operands of type `name`."""
    return MatmulSpec(m, n, k, name, name, "f32", **more)


def drawn(k, least, most, rows=16):
    """Two operands of normal numbers times powers of two from `least` to below `most`."""
    draw = np.random.default_rng(k)
    return [
        np.ldexp(draw.standard_normal((rows, k)), draw.integers(least, most, (rows, k))).astype(
            np.float32
        )
        for _ in range(2)
    ]


def cancelling(k, rows=16):
    """Two operands whose products of even and odd K nearly take each other back."""
    a, b = drawn(k, -20, 20, rows)
    for each in (a, b):
        each[:, 1::2] = each[:, : k - k % 2 : 2]
    a[:, 1::2] *= np.float32(-1 - 2.0**-20)
    return a, b


def errors(made, a, b):
    """The largest, relative to the sum of the magnitudes of all products of an element."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (np.abs(np.asarray(made) - a @ b.T) / (np.abs(a) @ np.abs(b).T)).max()
