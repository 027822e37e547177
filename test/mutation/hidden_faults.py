"""Planted faults in what the emulator says of rules that a lucky order of warps or lanes hides."""

from __future__ import annotations

from fault import Fault

MAPS = ("test/emulator/tensor_copies/test_device_tensor_maps.py",)

HIDDEN = [
    Fault(
        "freed-pairs: a warp gives up the permit while another may still allocate",
        "    if _unknown(warp.cta.state(_TAKEN, dict), happened):\n",
        "    if False:\n",
        ("test/emulator/tensor_core/test_engine_tensor_refusals.py",),
    ),
    Fault(
        "tensor-map-updates: a map is published while another lane may still build it",
        "    warp.launch.mask = TOGETHER\n    data = _read(",
        "    data = _read(",
        MAPS,
    ),
    Fault(
        "tensor-map-updates: of lanes that change a map alike one has done it",
        "            lanes = mask & (places == place) & (values == new)\n",
        "            lanes = np.arange(32) == int(np.flatnonzero(mask)[0])\n",
        MAPS,
    ),
]

PLACES_OF_RANKS = [
    Fault(
        "spaces: loads and stores take addresses of rank 0 for their own unnoticed",
        "        if self._warn and any_of(plain):\n",
        "        if False:\n",
        ("test/emulator/clusters/test_cluster_memory.py",),
    ),
    Fault(
        "shared-access: arrivals take addresses of rank 0 for their own unnoticed",
        "        if rank != cta.rank:\n            cta.warn",
        "        if False:\n            cta.warn",
        ("test/emulator/clusters/test_cluster_memory.py",),
    ),
    Fault(
        "cp-async: copies take addresses of rank 0 for their own unnoticed",
        "addresses[addresses & ~_OFFSET_MASK != region.base]",
        "addresses[addresses > _OFFSET_MASK]",
        ("test/emulator/clusters/test_cluster_memory.py",),
    ),
    Fault(
        "checks: a matrix may be shared where there is no batch",
        "        if not (spec.batch or spec.dynamic_batch or getattr(spec, name)):\n",
        "        if False:\n",
        ("test/numerics/sizes/test_batches.py",),
    ),
]

LONE_HALVES = [
    Fault(
        "freed-pairs: two warps allocate other sizes in the order that the run happens to take",
        "    if _unknown((other for other in taken if taken[other] != columns), happened):\n",
        "    if False:\n",
        ("test/emulator/races/test_sizes_of_allocations.py",),
    ),
    Fault(
        "atomic: the least and the largest of halves may be taken one by one",
        '    if operation in ("min", "max") and type_.name in _HALVES:\n',
        "    if False:\n",
        ("test/fuzz/test_ptx_rules.py",),
    ),
]
