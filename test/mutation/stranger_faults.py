"""Planted faults in what strange calls, tensors and tables meet."""

from __future__ import annotations

from fault import Fault

STRANGERS = [
    Fault(
        "module: graphs that hold a kernel never look at its module",
        "        self._check()\n        return self._kernel(*inputs)\n",
        "        return self._kernel(*inputs)\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "module: a kernel's check holds its module until the next collection",
        "        LOADED[self.key] = self\n",
        "        LOADED[self.key] = kernel.entered = self\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "tables: what was found while a pass was entered is kept",
        "    if _changes != before:\n",
        "    if _changes < before:\n",
        ("test/compiler/calls/test_found_kernels.py",),
    ),
    Fault(
        "kernel-cache: a kernel is written for others while a pass is entered",
        "    if path is not None and changes() == before:",
        "    if path is not None and changes() >= before:",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "tables: results of before a change are found after it",
        "        return self._kept(_changes, *given, **named)",
        "        return self._kept(0, *given, **named)",
        ("test/compiler/calls/test_found_kernels.py",),
    ),
    Fault(
        "kernel-cache: kernels of a user's passes are kept for other processes",
        "    if ours and _is_usable(path):",
        "    if ours in (True, False) and _is_usable(path):",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "inductor: graphs call kernels of the pass before",
        "when_changed(_loaded.clear)",
        "when_changed(_loaded.copy)",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "kernel: graphs convert a result to any output",
        "            self._check_given(given, results)\n",
        "            id(results)\n",
        ("test/runtime/test_called_kernels.py",),
    ),
    Fault(
        "passes: an interrupt in a walk is an error of MLIR",
        "[2].startswith(KeyboardInterrupt.__name__):",
        '[2].startswith("Interrupt"):',
        ("test/passes/test_interrupted_walks.py",),
    ),
    Fault(
        "tables: a GPU is the chip of the package, whatever a user entered",
        "    return replace(found, gpu=gpu.gpu or found.gpu)",
        "    return gpu or replace(found, gpu=found.gpu)",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "tables: a target is entered by any name",
        "TARGETS = Table(OWN_TARGETS, _check_entry)",
        "TARGETS = Table(OWN_TARGETS)",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "inductor: graphs on disk know nothing of chips that a user entered",
        "self.settings.key(), chips]",
        "self.settings.key(), chips[:0]]",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "inductor: graphs on disk are found whatever a user's passes are",
        "        if PASSES.entered():\n",
        "        if not PASSES:\n",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "bundles: a size is whatever compares with numbers",
        "    if len(values) != len(names) or any(type(each) is not int for each in values):",
        "    if len(values) != len(names):",
        ("test/runtime/test_bundles_of_several_kernels.py",),
    ),
    Fault(
        "ptx-head: the first byte of shared memory is the last",
        "    reach = max(map(int, SHARED",
        "    reach = min(map(int, SHARED",
        ("test/runtime/test_manifest_and_ptx.py",),
    ),
    Fault(
        "quantized: the judge takes the likely scale for the largest",
        "(amax.high > FLOAT32_MAX)\n    return Interval(low, middle, high, nan)",
        "(amax.high > FLOAT32_MAX)\n    return Interval(low, high, middle, nan)",
        ("test/runtime/test_quantized_reference.py",),
    ),
    Fault(
        "weight-layers: all weights lie in pairs",
        '(kind in ("s4", "u4") and k % 2)',
        "k % 2",
        ("test/compiler/scales/test_weight_only.py",),
    ),
    Fault(
        "lookup: each number of rows has a kernel of its own",
        "    if not any(opened) or (stack",
        "    if not all(opened) or (stack",
        ("test/compiler/calls/test_matmul_of_any_m.py",),
    ),
    Fault(
        "fused-rows: each number of rows has an entry of its own",
        "(_quick(left, how, True), ",
        "(_quick(left, how, False), ",
        ("test/compiler/calls/test_epilogues_of_any_m.py",),
    ),
    Fault(
        "module: one buffer by two names may become two",
        "        *module.named_buffers(remove_duplicate=False),",
        "        *module.named_buffers(),",
        ("test/compiler/test_views_of_modules.py",),
    ),
    Fault(
        "results: an output of a subclass may change behind autograd",
        "        if isinstance(each, torch.Tensor):\n            torch.autograd.graph",
        "        if each is torch.Tensor:\n            torch.autograd.graph",
        ("test/runtime/test_called_kernels.py",),
    ),
    Fault(
        "double-sums: what a sum rounds away has the other sign",
        "        low = low + (lost + rest)\n",
        "        low = low + (rest - lost)\n",
        ("test/runtime/test_reference.py",),
    ),
    Fault(
        "fused-rows: objects whose ids are in a key may die",
        "how, epilogue, likes, place)._replace(kept=kept)",
        "how, epilogue, likes, place)",
        ("test/compiler/calls/test_epilogues_of_any_m.py",),
    ),
    Fault(
        "scaled-mm: a preset that is named is left out",
        "or None,\n        preset=how.preset or None,\n    )\n\n\ndef _by_two",
        "or None,\n    )\n\n\ndef _by_two",
        ("test/compiler/scales/test_scaled_mm.py",),
    ),
    Fault(
        "child: other threads fork while a program is started",
        "    with _starting:\n        return subprocess.Popen",
        "    if _starting:\n        return subprocess.Popen",
        ("test/runtime/test_forks.py",),
    ),
    Fault(
        "placement: arrays of numpy start at even addresses",
        '    return offset_bytes(array) if type(array).__module__ == "numpy" else 0',
        '    return offset_bytes(array) if type(array).__module__ == "torch" else 0',
        ("test/compiler/calls/test_operands_in_place.py",),
    ),
    Fault(
        "recomposed: whatever reads a matrix is that matrix in f32",
        "    if wide.target is not CONVERT or wide.args[1] is not torch.float32:",
        "    if wide.target is None:",
        ("test/inductor/test_recomposed.py",),
    ),
    Fault(
        "load: a file that enters no pass is taken",
        "        if changes() == before:\n",
        "        if False:\n",
        ("test/tools/test_loaded_files.py",),
    ),
    Fault(
        "load: an error of a file is told without its line",
        "reversed(frames) if each.filename == str(file)",
        "reversed(frames) if each.filename != str(file)",
        ("test/tools/test_loaded_files.py",),
    ),
]
