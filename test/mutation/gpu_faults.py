"""Planted faults in what a GPU's name, and what ranks that share tensors, decide."""

from __future__ import annotations

from fault import Fault

NAMES = [
    Fault(
        "linalg-text: an H100 sums 8-bit floats exactly, as it is not called sm_90a",
        "    return find_target(target).chip in SHORT_SUMS",
        "    return target in SHORT_SUMS",
        ("test/compiler/schedule/test_gpus.py",),
    ),
    Fault(
        "sharding: what ranks have of a weight's gradient from their rows is the whole of it",
        "        *(([Partial()], [Shard(dim), Shard(dim)]) for dim in range(last)),",
        "        *(([Replicate()], [Shard(dim), Shard(dim)]) for dim in range(last)),",
        ("test/compiler/calls/test_sharding.py",),
    ),
]
