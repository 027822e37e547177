"""Who sends operand tiles to whom in a cluster, against the definition by coordinates."""

import itertools

import pytest

from tilewright.passes.cluster import Cluster

SHAPES = [(m, n) for m, n in itertools.product(range(1, 17), repeat=2) if 1 < m * n <= 16]


def clusters(pair):
    """Every cluster of up to 16 CTAs with every choice of what it shares."""
    for (m, n), shares_a, shares_b in itertools.product(SHAPES, *[(False, True)] * 2):
        if (m % 2 and pair) or (shares_a and n == 1) or (shares_b and m <= (2 if pair else 1)):
            continue
        yield Cluster(m, n, pair, shares_a, shares_b)


def ranks(mask):
    return {rank for rank in range(16) if mask >> rank & 1}


def needs_same_a(cluster, one, other):
    """A's rows go by the place along M; the CTAs along N share them."""
    return one % cluster.m == other % cluster.m if cluster.shares_a else one == other


def needs_same_b(cluster, one, other):
    """B's rows go by the place along N; in pairs each second CTA along M has the same half."""
    if not cluster.shares_b:
        return one == other
    halves = one % 2 == other % 2 if cluster.pair else True
    return one // cluster.m == other // cluster.m and halves


def writers(cluster, rank):
    """Ranks that need what this one needs, and so load a part of it for all."""
    return {
        other
        for other in range(cluster.size)
        if needs_same_a(cluster, rank, other) or needs_same_b(cluster, rank, other)
    }


@pytest.mark.parametrize("pair", [False, True])
def test_a_slot_is_written_by_all_who_share_its_tiles(pair):
    for cluster in clusters(pair):
        for rank in range(cluster.size):
            assert ranks(cluster.senders(rank)) == writers(cluster, rank), cluster


@pytest.mark.parametrize("pair", [False, True])
def test_every_writer_of_a_slot_hears_from_every_reader(pair):
    for cluster in clusters(pair):
        _check_releases(cluster)


def _check_releases(cluster):
    issuers = [rank for rank in range(cluster.size) if not cluster.pair or rank % 2 == 0]
    heard = dict.fromkeys(range(cluster.size), 0)
    for issuer in issuers:
        read_from = {issuer, issuer ^ 1} if cluster.pair else {issuer}
        told = set().union(*(writers(cluster, rank) for rank in read_from))
        assert ranks(cluster.released(issuer)) == told, cluster
        for rank in told:
            heard[rank] += 1
    assert set(heard.values()) == {cluster.release_count()}, cluster


def test_worked_masks_of_a_cluster_of_four_by_two():
    pairs = Cluster(4, 2, pair=True, shares_a=True, shares_b=True)
    assert pairs.senders(0) == 0b0001_0101  # A from ranks 0 and 4, B from 0 and 2
    assert pairs.released(2) == 0b1100_1111
    assert pairs.release_count() == 3
