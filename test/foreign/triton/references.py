"""What the kernels of this folder must compute, in float64.

A function a kernel: the launch's tensors by name, as float64 or integers, to the expected outputs.
"""

from __future__ import annotations

from math import erf

import numpy as np

Arrays = dict[str, np.ndarray]

TOLERANCE: dict[str, float] = {
    "attention": 2e-3,
    "causal_attention": 2e-3,
    "gelu_bias": 1e-2,
    "gluon_attention": 2e-3,
    "layer_norm": 1e-5,
    "quantised": 1e-3,
    "scans": 1e-4,
}
"""Relative and absolute, of kernels whose inputs do not make every sum exact."""


def matmul(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"].T}


def gelu_bias(tensors: Arrays) -> Arrays:
    x = tensors["a"] @ tensors["b"] + tensors["bias"]
    return {"out": 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))}


def small_floats(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def quantised(tensors: Arrays) -> Arrays:
    total = tensors["a"].astype(np.float64) @ tensors["b"].astype(np.float64)
    return {"out": total * tensors["scale_a"][:, None] * tensors["scale_b"]}


def tf32(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"]}


def split_k(tensors: Arrays) -> Arrays:
    total = tensors["c"] + tensors["a"] @ tensors["b"]
    return {"c": total / 2, "arrivals": np.array([4, 4])}


def grouped(tensors: Arrays) -> Arrays:
    groups = np.split(tensors["a"], tensors["ends"][:-1])
    return {"out": np.concatenate([a @ w for a, w in zip(groups, tensors["weights"], strict=True)])}


def persistent(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def attention(tensors: Arrays) -> Arrays:
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    score = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    score[:, np.triu(np.ones(score.shape[1:], bool), 1)] = -np.inf
    p = np.exp(score - score.max(-1, keepdims=True))
    return {"out": p @ v / p.sum(-1, keepdims=True)}


def causal_attention(tensors: Arrays) -> Arrays:
    heads = {name: tensors[name][None] for name in "qkv"}
    return {"out": attention(heads)["out"][0]}


def layer_norm(tensors: Arrays) -> Arrays:
    x = tensors["x"]
    mean, scale = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    y = (x - mean[:, None]) * scale[:, None] * tensors["gain"] + tensors["shift"]
    return {"y": y, "mean_out": mean, "scale_out": scale}


def block_scaled(tensors: Arrays) -> Arrays:
    a, b = (scaled(tensors[name], tensors[f"scale_{name}"]) for name in "ab")
    return {"c": a @ b.T}


def mixed_scales(tensors: Arrays) -> Arrays:
    return block_scaled(tensors)


def scaled(values: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Values times ue8m0 scales, each of which is of 32 neighbours along the last axis."""
    return values * np.repeat(np.exp2(exponents.astype(np.float64) - 127), 32, axis=1)


def warp_specialized(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def clusters(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def four_bit(tensors: Arrays) -> Arrays:
    a, b = (tensors[n] * np.repeat(tensors[f"scale_{n}"], 16, axis=1) for n in "ab")
    return {"c": a @ b.T}


def mixed_width(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ scaled(tensors["b"], tensors["scale_b"]).T}


def scans(tensors: Arrays) -> Arrays:
    x = tensors["x"]
    return {
        "sums": np.cumsum(x, axis=1),
        "ordered": -np.sort(-x, axis=1),
        "greatest": np.argmax(x, axis=1),
        "counts": np.bincount(tensors["keys"].reshape(-1), minlength=16),
    }


def stealing(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def gluon_roles(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def gluon_warpgroups(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def gluon_registers(tensors: Arrays) -> Arrays:
    return tf32(tensors)


def gluon_pair(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def gluon_stealing(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def gluon_scales(tensors: Arrays) -> Arrays:
    a, b = (scaled(tensors[n], in_rows(tensors[f"scale_{n}"])) for n in "ab")
    return {"c": a @ b.T}


def in_rows(blocks: np.ndarray) -> np.ndarray:
    """Scales [rows, scales of a row] of blocks [1, rows/128, scales/4, 2, 256], each of 32 × 16
    bytes: byte 16 i + 4 j + c is scale c of row 32 j + i."""
    tall, wide = blocks.shape[1:3]
    split = blocks.reshape(tall, wide, 32, 4, 4)
    return split.transpose(0, 3, 2, 1, 4).reshape(128 * tall, 4 * wide)


def gluon_scaled_pair(tensors: Arrays) -> Arrays:
    a, b = (tensors[n] * np.repeat(in_rows(tensors[f"scale_{n}"]), 16, axis=1) for n in "ab")
    return {"c": a @ b.T}


def gluon_cluster_sum(tensors: Arrays) -> Arrays:
    return {"sums": tensors["sums"] + tensors["x"].sum(0)}


def device_descriptors(tensors: Arrays) -> Arrays:
    return {"c": tensors["a"] @ tensors["b"]}


def gathered_rows(tensors: Arrays) -> Arrays:
    out = np.empty((len(tensors["targets"]), tensors["weight"].shape[1]))
    out[tensors["targets"]] = tensors["table"][tensors["sources"]] @ tensors["weight"]
    return {"out": out}


def gluon_gather(tensors: Arrays) -> Arrays:
    out = np.empty((len(tensors["targets"]), tensors["table"].shape[1]))
    out[tensors["targets"]] = tensors["table"][tensors["sources"]]
    return {"out": out}


def checked(tensors: Arrays) -> Arrays:
    return {"y": tensors["x"] * 2}


def gluon_multicast(tensors: Arrays) -> Arrays:
    return matmul(tensors)


def gluon_attention(tensors: Arrays) -> Arrays:
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    p = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    return {"out": p @ v / p.sum(1, keepdims=True)}


def gluon_shared(tensors: Arrays) -> Arrays:
    x, keys = tensors["x"], tensors["keys"]
    return {"y": x[(5 * np.arange(len(x)) + 3) % len(x)], "counts": np.bincount(keys, minlength=32)}
