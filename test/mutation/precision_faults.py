"""Planted faults of narrow weights, and of f32 as parts of tf32 or bf16."""

from __future__ import annotations

from fault import Fault

NUMERICS = "test/numerics"

WEIGHTS = [
    Fault(
        "widened words: the sign of s8 is lost in bf16",
        '    return _difference(arith.ori(low, magic), arith.ori(sign, magic), "bf16")',
        '    return _difference(arith.ori(low, magic), magic, "bf16")',
        (f"{NUMERICS}/weights/test_weights.py",),
    ),
    Fault(
        "group scales: a tile's first step multiplies by the scales of the next one",
        "            with build.when(begins(op)):\n                _ask(reads, slots, step)\n",
        "            with build.when(begins(op)):\n                _ask(reads, slots, step + 1)\n",
        (f"{NUMERICS}/weights/test_weights.py",),
    ),
    Fault(
        "weights: the second half of an MMA's K is read from the first",
        "for half in (0, HALF_K)]",
        "for half in (0, 0)]",
        (f"{NUMERICS}/weights/test_weights.py",),
    ),
]
PRECISION = [
    Fault(
        "split-words: the low part of B is left out",
        "PRODUCTS = (((LOW, HIGH), (HIGH, LOW), (HIGH, HIGH)),)",
        "PRODUCTS = (((LOW, HIGH), (HIGH, HIGH)),)",
        (f"{NUMERICS}/f32/test_split_f32.py",),
    ),
    Fault(
        "split-words: what is left of an element is that of its high part",
        "left = arith.subf(value, llvm.bitcast(value.type, high))",
        "left = llvm.bitcast(value.type, high)",
        (f"{NUMERICS}/f32/test_split_f32.py",),
    ),
    Fault(
        "split-words: the last parts of bf16x9 are not multiplied",
        "    ((THIRD, FIRST), (SECOND, SECOND), (FIRST, THIRD)),\n",
        "    ((SECOND, SECOND),),\n",
        (f"{NUMERICS}/f32/test_nine_products.py",),
    ),
    Fault(
        "bf16-parts: what is left of an element is not made larger",
        "LEFT = 2.0**SHIFT\n",
        "LEFT = 2.0 ** (SHIFT - 1)\n",
        (f"{NUMERICS}/f32/test_nine_products.py",),
    ),
    Fault(
        "bf16-parts: an infinite operand has parts like a number",
        "        value = arith.mulf(left, build.f32(LEFT))\n        pieces.append(value)\n",
        "        value = arith.mulf(left, build.f32(LEFT))\n        pieces.append(value)\n"
        "    pieces[0] = llvm.bitcast(f32, word)\n",
        (f"{NUMERICS}/f32/test_nine_products.py",),
    ),
]
SETTINGS = [
    Fault(
        "precision: calls of f32 are known by what they ask for, whatever torch's setting became",
        "    asked = settled(a, How(*how))",
        "    asked = How(*how)",
        ("test/compiler/calls/test_matmul_of_other_types.py",),
    ),
    Fault(
        "precision: torch's setting is no default",
        '    return ALL_DIGITS if asks_for_all_digits(torch) else "tf32"',
        '    return "tf32"',
        ("test/compiler/calls/test_matmul_of_other_types.py",),
    ),
]
ELSEWHERE = [
    Fault(
        "placement: an output whose elements share memory gets a copy of the result",
        "        if size > 1 and stride <= end:\n            return True\n",
        "",
        ("test/compiler/calls/test_operands_in_place.py",),
    ),
]
OF_MODULES = [
    Fault(
        "module: f32 of a torch module is multiplied as tf32, whatever torch's setting asks for",
        "        source = replace(_in_place(source, module, inputs, chip), all_digits=exact)",
        "        source = _in_place(source, module, inputs, chip)",
        ("test/compiler/calls/test_matmul_of_other_types.py",),
    ),
]
