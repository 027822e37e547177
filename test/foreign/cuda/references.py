"""What the kernels of this folder must compute, in float64.

A function a kernel: the launch's tensors by name, as float64 or integers, to the expected outputs.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

Arrays = dict[str, np.ndarray]

TOLERANCE: dict[str, float] = {"epilogues": 1e-6}
"""Relative and absolute, of kernels whose inputs do not make every sum exact."""

WARP = 32


def ring_gemm(tensors: Arrays) -> Arrays:
    total = tensors["a"] @ tensors["b"] + tensors["bias"]
    return {"out": np.maximum(total, 0)}


def dp4a_gemm(tensors: Arrays) -> Arrays:
    thousandths = [11, 23, 5, 17, 31, 7, 13, 19, 29, 3, 37, 41, 9, 15, 21, 27, 33, 39]
    scales = (np.array([*thousandths, *range(2, 30, 2)]) / 1000).astype(np.float32)
    total = tensors["a"].astype(np.int32) @ tensors["b"].astype(np.int32).T
    rounded = np.rint(total.astype(np.float32) * scales).astype(np.int32) - 3
    clipped = np.clip(rounded, -128, 127)
    return {"out": clipped, "clipped": tensors["clipped"] + (clipped != rounded).sum()}


def wmma_gemm(tensors: Arrays) -> Arrays:
    return {"d": 1.5 * tensors["a"] @ tensors["b"].T - 0.5 * tensors["c"]}


def stream_k(tensors: Arrays) -> Arrays:
    steps, per_cta = tensors["a"].shape[1] // 8, 6
    starts = np.arange(0, len(tensors["flags"]) * steps, per_cta)
    inside = starts[starts % steps != 0] // steps
    parts = np.bincount(inside, minlength=len(tensors["flags"]))
    return {"c": tensors["a"] @ tensors["b"].T, "flags": parts}


def epilogues(tensors: Arrays) -> Arrays:
    sums = np.cumsum(tensors["a"][:, None, :] * tensors["b"], axis=2)
    out = np.empty(sums.shape[:2])
    for row, column in np.ndindex(out.shape):
        history = np.zeros(8)
        for i, value in enumerate(sums[row, column]):
            history[(i * 5 + column) % 8] = value
        x = sums[row, column, -1]
        how = (np.rint, np.floor, np.ceil, np.trunc)[(row + column) % 4]
        out[row, column] = _epilogue((3, 0, 5, 1, 6, 2, 4, 7)[column % 8], x, history) + how(x)
    return {"out": out}


def _epilogue(code: int, x: float, history: np.ndarray) -> float:
    choices = (
        x,
        max(x, 0),
        x / (1 + abs(x)),
        0.25 - x + 0.5 * x**2 + 0.125 * x**3,
        1 + 0.75 * x - 0.5 * x**3,
        history.min(),
        history.max(),
        -x,
    )
    return choices[code]


def warp_groups(tensors: Arrays) -> Arrays:
    x, keys, payload = tensors["x"], tensors["keys"], tensors["payload"]
    warps = [slice(at, at + WARP) for at in range(0, len(keys), WARP)]
    rows = [_grouped(x[warp], keys[warp], payload[warp]) for warp in warps]
    votes = [_voted(keys[warp], payload[warp]) for warp in warps]
    return {"rows": np.concatenate(rows), "votes": np.array(votes, np.uint32)}


def _grouped(x: np.ndarray, keys: np.ndarray, payload: np.ndarray) -> np.ndarray:
    same = keys[:, None] == keys
    ors = [np.bitwise_or.reduce(payload[row]) for row in same]
    most = [payload[row].max() for row in same]
    sums = [x[row, 0].sum() for row in same]
    integers = np.stack([x.argmax(1), same.sum(1), ors, most], 1).astype(np.int32)
    floats = np.stack([sums, np.cumsum(x[:, 1])], 1).astype(np.float32)
    return np.concatenate([integers.view(np.uint32), floats.view(np.uint32)], 1)


def _voted(keys: np.ndarray, payload: np.ndarray) -> list[int]:
    lanes = (1 << len(keys)) - 1
    high = keys >> 8
    alike = lanes if (high == high[0]).all() else 0
    mirrored = [int(f"{int(key):032b}"[::-1], 2) for key in keys]
    mask = int(np.bitwise_xor.reduce(np.array(mirrored, np.uint32)))
    sources = mask.to_bytes(4, "little") + lanes.to_bytes(4, "little")
    permuted = int.from_bytes(bytes(sources[i] for i in (5, 1, 7, 3)), "little")
    return [alike, int((payload < 0).any()) | int((payload < 100).all()) << 1, mask, permuted]


def wgmma_ring(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}


def wgmma_fp8(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}


def cluster_reduce(tensors: Arrays) -> Arrays:
    out = tensors["a"] @ tensors["b"].T
    return {"out": out, "least": np.minimum(tensors["least"], out.min(0))}


def tcgen05_gemm(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}


def tcgen05_pairs(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}


def tcgen05_fp8(tensors: Arrays) -> Arrays:
    return {"c": 0.5 * tensors["a"] @ tensors["b"]}


def tcgen05_mxfp8(tensors: Arrays) -> Arrays:
    a = tensors["a"] * _spread(np.exp2(tensors["scales_a"] - 127.0), 32)
    b = tensors["b"] * _spread(np.exp2(tensors["scales_b"] - 127.0), 32)
    return {"c": a @ b.T}


def tcgen05_nvfp4(tensors: Arrays) -> Arrays:
    scales = [tensors[name].view(ml_dtypes.float8_e4m3fn) for name in ("scales_a", "scales_b")]
    spread_a, spread_b = (_spread(each.astype(np.float64), 16) for each in scales)
    spread_b = spread_b.reshape(-1, 2, 64, spread_b.shape[1])[:, 0].reshape(-1, spread_b.shape[1])
    return {"c": tensors["alpha"] * ((tensors["a"] * spread_a) @ (tensors["b"] * spread_b).T)}


def _spread(blocks: np.ndarray, size: int) -> np.ndarray:
    """A scale an element [M, K] from [M/128, K/(4·size), 32, 4, 4]: rows r and r+32 are neighbours.

    Source: PTX ISA §9.7.16.10.7, the scale factor layout that tcgen05.cp.32x128b.warpx4 keeps.
    """
    rows, columns = blocks.shape[0] * 128, blocks.shape[1] * 4
    ordered = blocks.transpose(0, 3, 2, 1, 4).reshape(rows, columns)
    return ordered.repeat(size, axis=1)


def tcgen05_clc(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T + tensors["bias"]}


def grouped_maps(tensors: Arrays) -> Arrays:
    groups = np.split(tensors["a"], tensors["first"][1:-1])
    matrices = np.split(tensors["b"], len(groups))
    return {"c": np.concatenate([a @ b.T for a, b in zip(groups, matrices, strict=True)])}


def neighbours(tensors: Arrays) -> Arrays:
    return {"out": tensors["a"] @ tensors["b"].T}


def bulk_split_k(tensors: Arrays) -> Arrays:
    a, b, per_cta = tensors["a"], tensors["b"], 3 * 16
    parts = [a[:, at : at + per_cta] @ b[:, at : at + per_cta].T for at in range(0, 112, per_cta)]
    out = tensors["out"] + sum(parts)[: len(tensors["out"])]
    largest = np.max([tensors["largest"], *(part.max(0) for part in parts)], 0)
    above = tensors["above"] + sum(int((part > 30).sum()) for part in parts)
    return {"out": out, "largest": largest, "above": above}
