"""Sums of 8-bit floats by wgmma, over their whole range, as Hopper's 14 bits have them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from silicon_case import BITS, FLOATS, Case, generator
from warpgroup_products import B_AT, IMAGE_BYTES, THREADS, Form, _kernel

DRAWS = 24
TYPES = ("f32.e4m3.e4m3", "f32.e5m2.e5m2", "f32.e4m3.e5m2", "f32.e5m2.e4m3")
SPREADS, SUM_SPREADS = (1, 2, 4, 7, 10, 15), (0, 8, 12, 20)
"""Powers of two that values reach on both sides of 1."""
MOST = {"e4m3": 448, "e5m2": 57344, "f32": 1e30}
STRIDES = 128 >> 4 << 16 | 256 >> 4 << 32
"""Of a descriptor without swizzle: bytes along K, and from 8 rows to the next."""


def float_sums() -> Iterator[Case]:
    """A in registers, B in shared memory; sums start anew in every fourth."""
    for types in TYPES:
        for draw in range(DRAWS):
            form = Form(types, ("registers", "none"), (0, 0), 32, adds=bool(draw % 4))
            yield _case(form, draw)


def _case(form: Form, draw: int) -> Case:
    title = f"{form.title} (fp8 sums) #{draw}"
    rng, (d, a, b) = generator(title), form.types.split(".")
    spread = SPREADS[draw % 6]
    fragment = _some(rng, (THREADS, 16), a, spread).view(np.uint32).reshape(THREADS, 4)
    image = _placed(_some(rng, (32, 32), b, spread))
    count = form.results * 32 // BITS[d]
    words = [_some(rng, (THREADS, count), d, SUM_SPREADS[draw % 4]).view(np.uint32), fragment]
    words.append(np.zeros((THREADS, 1), np.uint32))
    for descriptor in (STRIDES, STRIDES + (B_AT >> 4)):
        words.append(np.tile(np.array([descriptor], np.uint64).view(np.uint32), (THREADS, 1)))
    inputs = np.concatenate(words, axis=1)
    return Case(title, _kernel(form), image, inputs, form.results, "f32", fp8_sums="hopper")


def _some(rng: np.random.Generator, shape: tuple[int, int], type_: str, spread: int) -> np.ndarray:
    values = rng.choice([-1, 1], shape) * (1 + rng.random(shape))
    values = values * 2.0 ** rng.integers(-spread, spread + 1, shape)
    values[rng.random(shape) < 0.1] = 0
    most = MOST[type_]
    return np.ascontiguousarray(
        np.clip(values, -most, most).astype(np.float32).astype(FLOATS[type_])
    )


def _placed(values: np.ndarray) -> np.ndarray:
    """B's rows of 32 bytes in halves of 16, eight rows of each half behind each other."""
    image = np.zeros(IMAGE_BYTES, np.uint8)
    blocks = values.view(np.uint8).reshape(4, 8, 2, 16).transpose(0, 2, 1, 3)
    image[B_AT : B_AT + blocks.size] = blocks.reshape(-1)
    return image
