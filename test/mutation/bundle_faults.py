"""Planted faults in what holds records to each other: a manifest to its PTX, IR to its views."""

from __future__ import annotations

from fault import Fault

BUNDLES = [
    Fault(
        "ptx-head: PTX that says for which launch it was made is taken for any",
        "    if made_for and made_for[-1] != _launch_hash(manifest):\n",
        "    if made_for and not _launch_hash(manifest):\n",
        ("test/runtime/test_manifest_and_ptx.py",),
    ),
    Fault(
        "ptx-head: parameters of an entry are counted, and not measured",
        "    if sizes != wanted:\n",
        "    if len(sizes) != len(wanted):\n",
        ("test/runtime/test_manifest_and_ptx.py",),
    ),
    Fault(
        "agreement: parameters may stand in another order than their tensors",
        "    elif known != sorted(known, key=names.index):\n",
        "    elif set(known) != set(names):\n",
        ("test/runtime/test_manifest_and_ptx.py",),
    ),
    Fault(
        "agreement: the schedule of exchanged operands names A's swizzle first",
        'reversed(swizzles) if schedule.get("swapped") else swizzles, strict=True)',
        "swizzles, strict=True)",
        ("test/runtime/test_manifest_and_ptx.py",),
    ),
    Fault(
        "expanded: packed elements that are stored have as many columns as bytes",
        "n * bits[0] // (products * bits[1])",
        "n // products",
        ("test/fuzz/test_reading_back.py",),
    ),
    Fault(
        "written: a value of a row may lie anywhere behind the thread's first",
        "wanted, got = _columns(kernel, made)(first), op.behind.value",
        "wanted = got = op.behind.value",
        ("test/passes/test_expanded_loops.py",),
    ),
    Fault(
        "trace-operand: loops that sum count as elementwise",
        '    return all("parallel" in str(kind) for kind in op.attributes["iterator_types"])\n',
        '    return any("parallel" in str(kind) for kind in op.attributes["iterator_types"])\n',
        ("test/numerics/forms/test_forms_of_linalg.py",),
    ),
    Fault(
        "levels: passes of a schedule may follow the lowering",
        "        if lowered and not is_lowering(name):\n",
        "        if lowered and is_lowering(name) and level:\n",
        ("test/passes/test_rung_rejections.py",),
    ),
]
