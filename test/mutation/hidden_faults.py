"""Planted faults in what the emulator says of rules that a lucky order of warps or lanes hides."""

from __future__ import annotations

from fault import Fault

MAPS = ("test/emulator/tensor_copies/test_device_tensor_maps.py",)

HIDDEN = [
    Fault(
        "freed-pairs: a warp gives up the permit while another may still allocate",
        "    if _unknown(warp.cta, happened):\n",
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
