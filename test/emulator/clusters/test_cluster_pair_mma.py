"""tcgen05 with cta_group::2 in clusters of several pairs (PTX ISA §9.7.16)."""

from __future__ import annotations

import numpy as np
import pytest


def gathered(out: np.ndarray, pairs: dict, m: int, n: int, cluster, grid) -> dict:
    """D of every pair from the dumps: data-path layout A (M=256) or B (M=128)."""
    found = {key: np.full((m, n), np.nan) for key in pairs}
    for number, lanes in enumerate(out):
        x, y = number % grid[0], number // grid[0]
        rank = x % cluster[0] + cluster[0] * (y % cluster[1])
        d = found[x // cluster[0], y // cluster[1], rank // 2]
        if m == 256:
            d[128 * (rank % 2) : 128 * (rank % 2) + 128] = lanes
        else:
            rows = slice(64 * (rank % 2), 64 * (rank % 2) + 64)
            d[rows, : n // 2], d[rows, n // 2 :] = lanes[:64], lanes[64:]
    return found


def check(clusters, m, n, k, *, cluster=(2, 1), grid=None, **options) -> None:
    grid = grid or cluster
    out, pairs, _ = clusters.pair_case(m, n, k, cluster=cluster, grid=grid, **options)
    for key, d in gathered(out, pairs, m, n, cluster, grid).items():
        a, b = (matrix.astype(np.float64) for matrix in pairs[key])
        np.testing.assert_array_equal(d, a @ b.T)


@pytest.mark.pairwise
@pytest.mark.parametrize("mn", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("m", [128, 256])
def test_every_layout_gives_the_product(clusters, m, mode, mn):
    """§9.7.16.3.3 canonical layouts, §9.7.16.10.5 data-path layouts A and B"""
    k = min(clusters.SPAN[mode] // 2, 32) if not any(mn) and mode != "none" else 32
    if mode != "none" and not all(mn):
        k = min(k, clusters.SPAN[mode] // 2)
    check(clusters, m, 128, k, mode=mode, mn=mn, seed=m)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("n", [16, 32, 48, 80, 128, 208, 256])
@pytest.mark.parametrize("m", [128, 256])
def test_n_goes_in_steps_of_16_up_to_256(clusters, m, n):
    """§9.7.16.2.1 shapes of kind::f16 with cta_group::2"""
    if n // 2 % 8 == 0 and (m == 256 or n % 16 == 0):
        check(clusters, m, n, 64, mode="128B", seed=n)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("cluster", [(2, 1), (2, 2), (4, 1), (1, 2), (4, 4)])
@pytest.mark.parametrize("m", [128, 256])
def test_the_pairs_of_a_cluster_work_side_by_side(clusters, cluster, m):
    """§9.7.16.1 CTA pair: ranks that differ in the last bit"""
    check(clusters, m, 32, 32, mode="64B", cluster=cluster, seed=3)


def test_pairs_of_several_clusters_work_side_by_side(clusters):
    check(clusters, 256, 32, 32, mode="64B", cluster=(2, 1), grid=(4, 3), seed=5)


def test_either_cta_of_the_pair_may_issue(clusters):
    """§9.7.16.5 issue granularity: one thread of either CTA"""
    for issuer in (0, 1):
        check(clusters, 256, 64, 32, mode="64B", issuer=issuer, seed=issuer)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("seed", range(8))
def test_every_schedule_gives_the_product(clusters, seed):
    check(clusters, 256, 48, 64, mode="128B", cluster=(2, 2), seed=seed)
