"""What several CTAs, or two consumers, cannot share: a row each, whole message compared."""

import pytest
from refused_pipelines import ROLES, SPLIT, TMA, message_of, tile


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (f"{SPLIT},split-k", "tile.kernel: split-k: K is split already; run it once"),
        (
            f"{SPLIT}{{over=grid}},split-k",
            "tile.kernel: split-k: K is split already; run it once",
        ),
        (
            f"{SPLIT}{{parts=17 over=grid}}",
            "tile.kernel: split-k: each part over the grid must have K steps, got 5 in 17 parts; "
            "take 5",
        ),
        (
            f"{SPLIT}{{over=grid}},persistence",
            "tile.kernel: persistence: the CTAs along z share a tile; drop split-k",
        ),
        (
            f"{TMA},clustering{{shape=1x2}},split-k",
            "tile.kernel: split-k: CTAs of a cluster load together; drop clustering",
        ),
        (
            f"{SPLIT},clustering{{shape=2x1}}",
            "tile.kernel: clustering: where K is split the tiles must be whole clusters, got "
            "3x5 tiles and 2x1; take a shape that divides them",
        ),
        (
            f"{SPLIT}{{parts=6}},clustering{{shape=3x1}}",
            "tile.kernel: clustering: a cluster of sm_100a has at most 16 CTAs, got 3x1 in 6 parts "
            "= 18; use a smaller shape",
        ),
        (
            f"{SPLIT},clustering{{shape=2x1 pair=true}}",
            "tile.mma: clustering: the parts of a split K are sums of lone CTAs; drop pair=true",
        ),
        (
            f"{TMA},persistence,split-k",
            "tile.kernel: split-k: tiles are handed out already; drop persistence",
        ),
        (
            f"{SPLIT},persistence",
            "tile.kernel: persistence: the CTAs of a cluster share a tile; drop split-k",
        ),
        (
            f"{ROLES},split-k",
            "tile.kernel: split-k: the program has roles already; run it before "
            "warp-specialization",
        ),
        (
            f"{TMA},epilogue-staging,split-k",
            "tile.kernel: split-k: threads store the sums, got a staged store; "
            "drop epilogue-staging",
        ),
        (
            f"{TMA},pipelining{{stages=2}},split-k",
            "tile.kernel: split-k: K must be one loop, got 3; run it before pipelining",
        ),
        (
            f"{SPLIT}{{parts=17}}",
            "tile.kernel: split-k: a cluster of sm_100a has at most 16 CTAs, got 1x1 in 17 parts "
            "= 17; take fewer parts",
        ),
        (
            f"{tile('256x256x64')},split-k",
            "tile.store: split-k: a part of the tile needs 262144 bytes, over the 165888 that are "
            "left; use a smaller tile",
        ),
    ],
)
def test_a_split_k_that_cannot_be(pipeline, message):
    assert message_of(pipeline) == f"error: {message}"


LOOP = f"{ROLES},persistence"
BY_TWO = LOOP.replace("tiling", "tiling{tile=128x256x32}")
THREE = LOOP.replace(",warp", ",epilogue-staging{columns=32 buffers=3},warp")


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            f"{TMA},persistence,ping-pong",
            "tile.kernel: ping-pong: needs a consumer and a load role; run warp-specialization "
            "first",
        ),
        (
            f"{ROLES},ping-pong",
            "pipe.role: ping-pong: needs a loop over tiles; run persistence first",
        ),
        (
            f"{LOOP},ping-pong,ping-pong",
            "tile.kernel: ping-pong: the program has two consumers already; run it once",
        ),
        (
            f"{BY_TWO},ping-pong",
            "tile.accumulator: ping-pong: each warpgroup holds a whole tile, 128x256 takes 2; use "
            "a smaller tile, as 128x128 or 64x256",
        ),
        (
            f"{THREE},ping-pong",
            "tile.staged_store: ping-pong: two consumers share the staging buffers, got 3; give "
            "epilogue-staging buffers=4",
        ),
        (
            f"{SPLIT},warp-specialization,ping-pong",
            "pipe.role: ping-pong: needs a loop over tiles; run persistence first",
        ),
    ],
)
def test_what_two_consumers_cannot_share(pipeline, message):
    assert message_of(pipeline, target="sm_90a") == f"error: {message}"


def test_two_consumers_are_for_accumulators_in_registers():
    assert message_of(f"{LOOP},ping-pong") == (
        "error: tile.kernel: ping-pong: sm_100a has accumulators in tensor memory, of which "
        "persistence takes two; drop ping-pong"
    )
