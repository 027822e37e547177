"""Kernels written by hand, for what no preset has: PTX beside this file, launches here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np

from tilewright import scales
from tilewright.runtime.emulator import TensorMap, launch

KERNELS = Path(__file__).parent / "kernels"
ROWS = 5
SHARED_BYTES = 8192


@dataclass(frozen=True)
class Case:
    """Parameters, the one of them that is the output, and what it must hold."""

    params: list
    out: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Written:
    """A kernel of `kernels/NAME.ptx`; make: a case from a random generator."""

    name: str
    block: int
    make: Callable[[np.random.Generator], Case]
    grid: int = 1
    shared_bytes: int = 0
    cluster: int = 1

    @property
    def title(self) -> str:
        """As the table of bugs calls it."""
        return f"{self.name}.ptx"

    @property
    def ptx(self) -> str:
        """The kernel without a bug."""
        return (KERNELS / f"{self.name}.ptx").read_text()

    def run(self, ptx: str, seed: int, describe: None = None):
        """Run a text of this kernel; (report, whether the output is exactly right)."""
        case = self.make(np.random.default_rng(seed))
        report = launch(ptx, "kernel", grid=self.grid, block=self.block, params=case.params,
                        shared_bytes=self.shared_bytes, cluster=self.cluster,
                        seed=seed)  # fmt: skip
        return report, np.array_equal(case.out, case.expected)


def _reversed(count: int) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        x, out = rng.integers(0, 1 << 32, count, np.uint32), np.full(count, 7, np.uint32)
        return Case([x, out], out, x[::-1])

    return make


def _integers(rng: np.random.Generator, shape: tuple[int, ...], dtype=np.float32) -> np.ndarray:
    """Small ones, whose products and sums are exact in any order."""
    return rng.integers(-8, 9, shape).astype(dtype)


def _split_k(rng: np.random.Generator) -> Case:
    x, out = _integers(rng, (4, 64)), np.full(64, np.nan, np.float32)
    parts, semaphore = np.full((4, 64), np.nan, np.float32), np.zeros(1, np.uint32)
    return Case([x, parts, semaphore, out], out, x.sum(0))


def _row_sum(columns: int, shift: int) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        x, out = _integers(rng, (ROWS, columns)), np.full(columns, np.nan, np.float32)
        return Case([x, out, ROWS], out, np.roll(x.sum(0), -shift))

    return make


def _core_matrices(matrix: np.ndarray) -> np.ndarray:
    """The bytes of a K-major operand: 8 rows × 16 bytes together, along rows, then along K."""
    rows = matrix.view(np.uint8).reshape(len(matrix), -1, 16)
    return rows.transpose(1, 0, 2).reshape(-1)


def _wgmma(rng: np.random.Generator) -> Case:
    a, b = (_integers(rng, (rows, 16), ml_dtypes.bfloat16) for rows in (64, 8))
    image, out = np.concatenate([*map(_core_matrices, (a, b))]), np.full((128, 4), np.nan, "f4")
    product = a.astype(np.float32) @ b.astype(np.float32).T
    warp, group, register = np.ogrid[:4, :32, :4]
    rows, columns = 16 * warp + group // 4 + register // 2 * 8, group % 4 * 2 + register % 2
    return Case([image, out], out, product[rows, columns].reshape(128, 4))


def _scaled_image(a: np.ndarray, b: np.ndarray, sfa: np.ndarray, sfb: np.ndarray) -> np.ndarray:
    """The bytes of one CTA: operands as core matrices, then the factors of 128 rows each."""
    parts = [_core_matrices(a), _core_matrices(b), np.zeros(256, np.uint8)]
    parts += [factors.reshape(4, 32, 4).transpose(1, 0, 2).reshape(-1) for factors in (sfa, sfb)]
    return np.concatenate(parts)


def _scaled(operand: np.ndarray, factors: np.ndarray) -> np.ndarray:
    return operand.astype(np.float32) * 2.0 ** (factors[:, :1].astype(np.float32) - 127)


def _block_scaled(rng: np.random.Generator) -> Case:
    a, b = (_integers(rng, (rows, 32), ml_dtypes.float8_e4m3fn) for rows in (128, 8))
    sfa, sfb = rng.integers(123, 132, (2, 128, 4), np.uint8)
    out = np.full((128, 8), np.nan, np.float32)
    return Case([_scaled_image(a, b, sfa, sfb), out], out, _scaled(a, sfa) @ _scaled(b, sfb[:8]).T)


def _relayed_scales(rng: np.random.Generator) -> Case:
    """Each CTA has half of the rows of either operand, and all factors of B."""
    a, b = (_integers(rng, (rows, 32), ml_dtypes.float8_e4m3fn) for rows in (256, 16))
    sfa, sfb = (rng.integers(123, 132, (rows, 4), np.uint8) for rows in (256, 128))
    images = [
        _scaled_image(a[128 * cta :][:128], b[8 * cta :][:8], sfa[128 * cta :][:128], sfb)
        for cta in (0, 1)
    ]
    out, spare = np.full((256, 16), np.nan, np.float32), np.zeros(128, np.uint8)
    expected = _scaled(a, sfa) @ _scaled(b, sfb[:16]).T
    return Case([np.concatenate([*images, spare]), out], out, expected)


def _scaled_steps(rng: np.random.Generator, blocks: int = 4) -> Case:
    """Elements of 6 bits by tensor maps, and factors as `tilewright.scales` lays them out.

    blocks: factors a row that the kernel uses; 1 for all of K, and padding behind it.
    """
    values = [rng.standard_normal((rows, 128)) for rows in (128, 16)]
    a, b = (scales.quantize(each * 2.0 ** (each[:, :1] * 3), "mxfp6") for each in values)
    a, b = (each._replace(scales=each.scales[:, :blocks]) for each in (a, b))
    wide = [scales.dequantize(each.data, each.scales.repeat(4 // blocks, 1), "mxfp6")
            for each in (a, b)]  # fmt: skip
    maps = [TensorMap(each.data, "16u6_align16b", (128, len(each.data)), (96,),
                      (128, len(each.data)), swizzle="128B") for each in (a, b)]  # fmt: skip
    atoms = [scales.to_blocked(each.scales).reshape(1, -1).view(np.uint16) for each in (a, b)]
    maps += [TensorMap(each, "uint16", (256, 1), (512,), (256, 1)) for each in atoms]
    out = np.full((128, 16), np.nan, np.float32)
    return Case([*maps, out], out, (wide[0] @ wide[1].T).astype(np.float32))


def _scaled_halves(rng: np.random.Generator) -> Case:
    """Each CTA has half of the rows of either operand, and all factors of B: two rows of 32."""
    a, b = (_integers(rng, (rows, 32), ml_dtypes.float8_e4m3fn) for rows in (128, 64))
    sfa, sfb = (rng.integers(123, 132, (rows, 4), np.uint8) for rows in (128, 64))
    of_b = np.zeros((64, 16), np.uint8)
    of_b[:, :4] = sfb
    images = []
    for cta in (0, 1):
        of_a = scales.to_blocked(sfa[64 * cta :][:64]).reshape(-1)
        parts = (a[64 * cta :][:64], b[32 * cta :][:32])
        images += [*map(_core_matrices, parts), of_a, of_b.reshape(-1)]
    out = np.full((128, 64), np.nan, np.float32)
    return Case([np.concatenate(images), out], out, _scaled(a, sfa) @ _scaled(b, sfb).T)


def _copied(rng: np.random.Generator) -> Case:
    x, out = rng.integers(0, 1 << 32, 64, np.uint32), np.full(64, 7, np.uint32)
    return Case([x, out], out, x)


REVERSE = Written("reverse", 128, _reversed(128))
WARP_REVERSE = Written("warp_reverse", 32, _reversed(32))
LANE_RELEASE = Written("lane_release", 64, _reversed(32))
SPLIT_K = Written("split_k", 64, _split_k, grid=4)
CP_ASYNC = Written("cp_async", 64, _row_sum(64, 16))
RING = Written("ring", 64, _row_sum(32, 0))
WATCHER = Written("watcher", 96, _row_sum(32, 0))
WGMMA = Written("wgmma", 128, _wgmma, shared_bytes=SHARED_BYTES)
BLOCK_SCALED = Written("block_scaled", 128, _block_scaled, shared_bytes=SHARED_BYTES)
RELAYED_SCALES = Written(
    "relayed_scales", 128, _relayed_scales, grid=2, shared_bytes=SHARED_BYTES, cluster=2
)
SCALED_STEPS = Written("scaled_steps", 128, _scaled_steps, shared_bytes=20480)
ONE_FACTOR = replace(SCALED_STEPS, make=partial(_scaled_steps, blocks=1))
SCALED_HALVES = Written(
    "scaled_halves", 128, _scaled_halves, grid=2, shared_bytes=SHARED_BYTES, cluster=2
)
COPY_OUT = Written("copy_out", 64, _copied)
