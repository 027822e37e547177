"""Planted faults in what keeps files and processes: the cache, bundles, locks, signals."""

from __future__ import annotations

from fault import Fault

KEEPING = [
    Fault(
        "epilogue: an op may say what nobody reads",
        "        refuse_unread(op, OF_ELEMENT if isinstance(op, ElementOp) else",
        "        id(OF_ELEMENT if isinstance(op, ElementOp) else",
        ("test/passes/test_attribute_forms.py",),
    ),
    Fault(
        "tcgen05 with block scales: all atoms of a tile have the sums of the first",
        "column + atom * scope.atom_columns(atom_m, n)",
        "column + atom // scope.atom_columns(atom_m, n)",
        ("test/numerics/scales/test_block_scales.py",),
    ),
    Fault(
        "own-sources: a key has the names of sources and not what they say",
        '        total.update(f"{path.relative_to(root)} {len(content)}\\n".encode() + content)\n',
        '        total.update(f"{path.relative_to(root)}\\n".encode())\n',
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "pipeline: a pass of the lowering after which it stops loses its options",
        "LOWERING_NAMES.index(stop_after) + 1 :]",
        "LOWERING_NAMES.index(stop_after) - 1 :]",
        ("test/passes/test_resumed_lowering.py",),
    ),
    Fault(
        "placement: matrices side by side may hang over their rows",
        "(shape[0] - 1) * step + contiguous <= pitch",
        "step + contiguous <= pitch",
        ("test/compiler/calls/test_operands_in_place.py",),
    ),
    Fault(
        "quantized-pieces: the first bytes of a piece are its first columns, also of 4 bits",
        "piece.start if bits == 8 else",
        "piece.start if bits else",
        ("test/numerics/scales/test_quantized_outputs.py",),
    ),
    Fault(
        "module-form: a kernel keeps a number that its module has no longer",
        "        if before is not GIVEN and not is_same(before, after):\n",
        "        if type(before) is not type(after):\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module-reads: functions outside of a module read nothing of it",
        "                if is_of_user(code.__module__) or isinstance(code, type):\n",
        "                if isinstance(code, type):\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module-form: hooks that came later are left out",
        "    if not is_same(was.hooks, now.hooks):\n",
        "    if len(was.hooks) > len(now.hooks):\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module-values: a tensor that is no buffer may change",
        "        return one.tensor is other.tensor and one.changes == other.changes\n",
        "        return one.tensor is other.tensor\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module-watch: lists are what they were",
        "        for one, items in self._lists:\n",
        "        for one, items in self._lists[:0]:\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module-watch: nothing comes where nothing was",
        "        if module is not self.module or any(self._empty):\n",
        "        if module is not self.module:\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module-form: a kernel has no regard for autocast",
        "    if found in (compiled_in, operand.dtype) or operand.dtype not in _cast():\n",
        "    if compiled_in is None:\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "kernel-cache: a kernel of a pass of a user is found whatever the pass is now",
        "    return all(PASSES.is_own(call.name) for call in parse_pipeline(pipeline))\n",
        "    return bool(parse_pipeline(pipeline))\n",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "kernel-cache: a chip is its name alone",
        '    facts = {} if TARGETS.is_own(chip) else {"facts": repr(TARGETS[chip])}\n',
        "    facts: dict[str, str] = {}\n",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "tables: kernels of a pass outlive it",
        "    for forget in _forgets:\n",
        "    for forget in _forgets[:1]:\n",
        ("test/compiler/calls/test_found_kernels.py", "test/compiler/calls/test_kernel_cache.py"),
    ),
    Fault(
        "bundle-writer: an entry of the cache is believed in the place of another",
        "    if own != path.name:\n",
        "    if not own:\n",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "bundle-writer: a folder with other files is a bundle",
        "    strange = next((name for name in names if not _OURS.fullmatch(name)), None)\n",
        "    strange = None\n",
        ("test/runtime/test_bundle.py",),
    ),
    Fault(
        "locks: a child waits for a thread that it has not",
        "            lock._at_fork_reinit()\n",
        "            pass\n",
        ("test/runtime/test_forks.py",),
    ),
    Fault(
        "own-process: a signal breaks native code that is being loaded",
        'isinstance(frame.f_locals.get("self"), ExtensionFileLoader)',
        "False",
        ("test/tools/test_odd_places.py",),
    ),
]
