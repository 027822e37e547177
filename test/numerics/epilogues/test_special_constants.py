"""Infinities, NaNs with their payloads, zeros and denormals as constants of an epilogue, and what
comparisons make of them: bit for bit on the emulator."""

import numpy as np
import pytest
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.runtime.bundles.bundle import Bundle, read_bundle, seal
from tilewright.runtime.launch.devices import open_device

WORDS = {
    "f32": [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7FC12345, 0xFF812345, 0x7F800001,
            0x80000000, 0x00000001, 0x80000001, 0x807FFFFF, 0x7F7FFFFF, 0x3DCCCCCD],
    "bf16": [0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7FC5, 0xFF81, 0x8000, 1, 0x8001, 0x7F7F, 0x3DCD],
    "f16": [0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7E05, 0xFC01, 0x7D23, 0x8000, 1, 0x83FF, 0x2E66],
}  # fmt: skip
OUTPUTS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
BITS = {"f32": torch.int32, "bf16": torch.int16, "f16": torch.int16}
PREDICATES = {
    "false": lambda x, y: np.zeros_like(x, bool),
    "true": lambda x, y: np.ones_like(x, bool),
    "ord": lambda x, y: ~np.isnan(x) & ~np.isnan(y),
    "uno": lambda x, y: np.isnan(x) | np.isnan(y),
    "oeq": lambda x, y: x == y,
    "olt": lambda x, y: x < y,
    "ole": lambda x, y: x <= y,
    "ogt": lambda x, y: x > y,
    "oge": lambda x, y: x >= y,
    "one": lambda x, y: (x < y) | (x > y),
    "ueq": lambda x, y: ~((x < y) | (x > y)),
    "ult": lambda x, y: ~(x >= y),
    "ule": lambda x, y: ~(x > y),
    "ugt": lambda x, y: ~(x <= y),
    "uge": lambda x, y: ~(x < y),
    "une": lambda x, y: ~(x == y),
}
M, N = 64, 40


def function(element, body):
    """C[i, j] = what `body` makes of %u, a sum that is 0, of %x = x[i] and of %y = y[j]."""
    c, sums = f"tensor<{M}x{N}x{element}>", f"tensor<{M}x{N}xf32>"
    maps = ", ".join(f"affine_map<(i, j) -> ({dims})>" for dims in ("i, j", "i", "j", "i, j"))
    return f"""
func.func @f(%a: tensor<{M}x32xbf16>, %b: tensor<32x{N}xbf16>,
             %p: tensor<{M}xf32>, %q: tensor<{N}xf32>) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sum = linalg.matmul ins(%a, %b : tensor<{M}x32xbf16>, tensor<32x{N}xbf16>)
    outs(%init : {sums}) -> {sums}
  %into = tensor.empty() : {c}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
    ins(%sum, %p, %q : {sums}, tensor<{M}xf32>, tensor<{N}xf32>) outs(%into : {c}) {{
  ^bb0(%u: f32, %x: f32, %y: f32, %o: {element}):
    {body}
    linalg.yield %v : {element}
  }} -> {c}
  return %r : {c}
}}
"""


def run(text, x, y, dtype):
    compiled = compile_matmul(LinalgText(text, "m"), pipeline="tiling{tile=64x64x64}")
    cubin = compiled.assembled.cubin
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
    a, b = (torch.zeros(shape, dtype=torch.bfloat16) for shape in ((M, 32), (32, N)))
    c = torch.full((M, N), 7, dtype=dtype)
    tensors = {"a": a, "b": b.T, "e0": x, "e1": y, "c": c}
    names = [each["name"] for each in compiled.manifest["tensors"]]
    open_device("emulator").launch(bundle, {name: tensors[name] for name in names}, 0)
    return c, compiled


def rows():
    return torch.arange(M, dtype=torch.float32)


@pytest.mark.parametrize("element", WORDS)
def test_constants_reach_the_output_bit_for_bit(element):
    digits = 8 if element == "f32" else 4
    lines = [f"%k0 = arith.constant 0x{WORDS[element][0]:0{digits}X} : {element}"]
    value = "%k0"
    for row, word in enumerate(WORDS[element][1:], 1):
        lines += [
            f"%k{row} = arith.constant 0x{word:0{digits}X} : {element}",
            f"%r{row} = arith.constant {float(row)} : f32",
            f"%n{row} = arith.addf %u, %x : f32",
            f"%c{row} = arith.cmpf oeq, %n{row}, %r{row} : f32",
            f"%w{row} = arith.select %c{row}, %k{row}, {value} : {element}",
        ]
        value = f"%w{row}"
    body = "\n    ".join(lines).replace(value + " =", "%v =")
    c, _ = run(function(element, body), rows(), torch.zeros(N), OUTPUTS[element])
    found = c.view(BITS[element])[: len(WORDS[element])].numpy().astype(np.int64)
    expected = np.array(WORDS[element])[:, None] + np.zeros((1, N), np.int64)
    assert np.array_equal(found & (1 << 4 * digits) - 1, expected)


def test_every_predicate_compares_as_ieee_754_says():
    specials = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38]
    x = np.resize(np.array(specials, np.float32), M)
    y = np.resize(np.repeat(np.array(specials, np.float32), 4), N)
    lines, total = [], "%u"
    for bit, predicate in enumerate(PREDICATES):
        lines += [
            f"%c{bit} = arith.cmpf {predicate}, %x, %y : f32",
            f"%k{bit} = arith.constant {float(1 << bit)} : f32",
            f"%s{bit} = arith.select %c{bit}, %k{bit}, %zero : f32",
            f"%t{bit} = arith.addf {total}, %s{bit} : f32",
        ]
        total = f"%t{bit}"
    body = "\n    ".join(lines).replace(total + " =", "%v =")
    found, compiled = run(
        function("f32", body), torch.from_numpy(x), torch.from_numpy(y), torch.float32
    )
    grid = np.meshgrid(x, y, indexing="ij")
    truths = [truth(*grid).astype(int) << bit for bit, truth in enumerate(PREDICATES.values())]
    assert np.array_equal(found.numpy(), np.sum(truths, axis=0))
    written = [each["attributes"] for each in compiled.manifest["epilogue"]["operations"]]
    assert {each.get("predicate") for each in written} == {None, *PREDICATES}


def test_a_bundle_keeps_constants_that_are_not_finite(tmp_path):
    from tilewright.compiler.bundle_writer import as_bundle

    body = "%k = arith.constant 0xFF800000 : f32\n    %v = arith.maximumf %u, %k : f32"
    compiled = compile_matmul(
        LinalgText(function("f32", body), "m"), pipeline="tiling{tile=64x64x64}"
    )
    as_bundle(compiled, tmp_path / "k.zip")
    operations = read_bundle(tmp_path / "k.zip").manifest["epilogue"]["operations"]
    assert [each["attributes"].get("value") for each in operations] == [-np.inf, None]
