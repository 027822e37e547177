"""Planted faults where what comes in is passed over instead of being refused."""

from __future__ import annotations

from fault import Fault

INPUTS = [
    Fault(
        "split-k: steps that a loop leaves out are summed all the same",
        'if limit is not None and limit.less.value:\n        got = f"an end',
        'if limit is None and limit is not limit:\n        got = f"an end',
        ("test/numerics/sizes/test_split_depth.py",),
    ),
    Fault(
        "parameter-rules: what no parameter of a launch file names is passed over",
        '            if each["name"] not in read:\n',
        '            if each["name"] not in read and not entries:\n',
        ("test/emulate/test_launch_schema.py",),
    ),
    Fault(
        "name-rules: warps and barriers may have two names",
        "if start < last and first < end:",
        "if start < last < first < end:",
        ("test/emulate/test_launch_schema.py",),
    ),
    Fault(
        "blockwise: an MMA takes the scales of another tile",
        "        if form is None or not form.is_just(index) or place_of(index) != axis:\n"
        '            where = "MN"[axis]\n            rule = f"scales',
        '        if form is None:\n            where = "MN"[axis]\n            rule = f"scales',
        ("test/passes/test_blockwise_rules.py",),
    ),
    Fault(
        "check-matmul: operands may be of types that no MMA multiplies together",
        '    if reason:\n        raise refused(matmul, f"a and b {reason}")',
        '    if reason and a is b:\n        raise refused(matmul, f"a and b {reason}")',
        ("test/passes/test_operands_by_hand.py",),
    ),
    Fault(
        "shares: threads may read b in the place of a",
        "if argument_of(view) != kernel.body.blocks[0].arguments[number]:\n            raise",
        "if argument_of(view) is None:\n            raise",
        ("test/passes/test_operands_by_hand.py",),
    ),
    Fault(
        "verify: tiles of rows that are no fours are gathered",
        'layout.is_of_scales or layout.major != "k" or layout.rows % GATHERED_ROWS',
        'layout.is_of_scales or (layout.major != "k" and layout.rows % GATHERED_ROWS)',
        ("test/passes/test_operands_by_hand.py",),
    ),
    Fault(
        "sums: a thread reads rows that it has not",
        "    if op.number.value >= sums.share.m:\n",
        "    if op.number.value >= sums.share.m + 1:\n",
        ("test/passes/test_expanded_by_hand.py",),
    ),
    Fault(
        "tensor-core: an MMA of wgmma takes any K",
        "        if k != dtype.k_per_mma:\n",
        "        if k < 0:\n",
        ("test/dialects/test_sm_verifiers.py",),
    ),
    Fault(
        "indices: a step that begins elsewhere counts as the first one",
        "            return range(op.steps.value)\n",
        "            return range(1)\n",
        ("test/passes/test_rotation_rules.py",),
    ),
    Fault(
        "pipeline: what a pass of a user leaves has any form",
        "            _check_forms(module)\n",
        "            pass\n",
        ("test/passes/test_attribute_forms.py",),
    ),
    Fault(
        "attribute-forms: a number is cut to 32 bits",
        "abs(int(each.value)) > NUMBER_MAX:",
        "abs(int(each.value)) > NUMBER_MAX**4:",
        ("test/passes/test_attribute_forms.py",),
    ),
    Fault(
        "attribute-forms: truths and integers of other widths are taken for numbers",
        "str(each.type) != wanted:",
        'str(each.type) == "f32":',
        ("test/passes/test_attribute_forms.py",),
    ),
    Fault(
        "trace-scales: scales of f32 may be rounded, or lose their sign, before a product",
        "    if scale.steps:\n        got = ",
        "    if not scale.steps and name in ():\n        got = ",
        ("test/numerics/scales/test_scales_of_linalg.py",),
    ),
    Fault(
        "checks: nobody holds places and rings beside roles to their attributes",
        "            self._op(op, (), top=True)\n",
        "            del op\n",
        ("test/passes/test_kernel_rules.py",),
    ),
    Fault(
        "expanded: loads of an expanded kernel are not held to the views that they name",
        "        else:\n            check_load(kernel, op, target)\n"
        "    for op in walk(kernel, MMAS):\n",
        "    for op in walk(kernel, MMAS):\n",
        ("test/passes/test_expanded_loops.py",),
    ),
    Fault(
        "torch-effects: tensors that a module changes in place become results of its kernel",
        "if now != versions[name]]",
        "if now < versions[name]]",
        ("test/compiler/calls/test_module_effects.py",),
    ),
    Fault(
        "tune-candidates: what an earlier compiler made counts as made",
        'any(index[name].get("sources") != source_digest() for name in names):\n',
        "source_digest() is None:\n",
        ("test/tools/test_stopped_tunes.py",),
    ),
    Fault(
        "tensors: the mask of an array is passed over",
        "    if isinstance(value, np.ma.MaskedArray):\n",
        "    if value is np.ma.masked:\n",
        ("test/runtime/test_called_kernels.py",),
    ),
    Fault(
        "params: the mask of an array is passed over by the emulator",
        '    if isinstance(getattr(value, "array", value), np.ma.MaskedArray):\n',
        '    if isinstance(getattr(value, "array", None), np.ma.MaskedArray):\n',
        ("test/emulator/test_overlapping_arrays.py",),
    ),
    Fault(
        "epilogue-function: one result in a tuple is returned alone",
        "in_tuple=in_tuple)\n",
        "in_tuple=False)\n",
        ("test/compiler/calls/test_matmul_epilogues.py",),
    ),
    Fault(
        "emulator-device: a run takes the workspace that one left which ended midway",
        "        if self._is_midway:  #",
        "        if self._is_midway is None:  #",
        ("test/numerics/loops/test_split_grid.py",),
    ),
]
