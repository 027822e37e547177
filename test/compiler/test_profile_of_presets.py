"""What a profile counts of our kernels is what the matmul's sizes say."""

from __future__ import annotations

import pytest

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

M, N, K, TILE, BF16, F32, K_STEP = 256, 512, 192, 128, 2, 4, 16


@pytest.fixture(scope="module")
def profiles():
    """The profile of a kernel with a tile a CTA, and of one with pairs and TMA stores."""
    found = {}
    for preset in ("v1a", "v6"):
        bundle = as_bundle(compile_matmul(MatmulSpec(M, N, K), preset=preset))
        tensors = make_tensors(bundle.manifest, 0)
        report = open_device("emulator").launch(bundle, tensors, profile=True)
        found[preset] = report.profile.bytes
    return found


def test_each_tile_loads_its_operands_once(profiles):
    tiles = (M // TILE) * (N // TILE)
    loaded = tiles * 2 * TILE * K * BF16
    moved = profiles["v1a"]
    assert moved["global", "read", "tma"] == moved["shared", "write", "tma"] == loaded
    assert moved["shared", "read", "tensor core"] == loaded


def test_the_result_is_written_once(profiles):
    for moved in profiles.values():
        written = sum(
            amount
            for (memory, direction, _), amount in moved.items()
            if (memory, direction) == ("global", "write")
        )
        assert written == M * N * BF16


def test_the_accumulator_is_written_every_k_step_and_read_but_in_the_first(profiles):
    for moved in profiles.values():
        assert moved["tensor", "write", "tensor core"] == M * N * F32 * (K // K_STEP)
        assert moved["tensor", "read", "tensor core"] == M * N * F32 * (K // K_STEP - 1)
        assert moved["tensor", "read", "threads"] == M * N * F32


def test_a_pair_loads_b_once_for_two_tiles(profiles):
    assert profiles["v6"]["global", "read", "tma"] < profiles["v1a"]["global", "read", "tma"]


def test_a_multicast_reads_once_and_writes_every_cta():
    """2×2 clusters of pairs: A's rows go to both CTAs along N, each CTA of a pair has half of B"""
    pipeline = (
        "tiling{tile=128x128x64},tma-insertion,swizzle-selection,clustering{shape=2x2 pair=true},"
        "pipelining{stages=2},warp-specialization"
    )
    bundle = as_bundle(compile_matmul(MatmulSpec(512, 512, 128), pipeline=pipeline))
    tensors = make_tensors(bundle.manifest, 1)
    report = open_device("emulator").launch(bundle, tensors, profile=True, check="fast")
    moved, ctas = report.profile.bytes, 16
    a, b = ctas * 128 * 128 * BF16, ctas * 64 * 128 * BF16
    assert moved["global", "read", "tma"] == a // 2 + b
    assert moved["distributed shared", "write", "tma"] == a // 2
    assert moved["shared", "write", "tma"] == a // 2 + b
