"""Tables that two packages keep for themselves, because one may not import the other, agree."""

import ml_dtypes  # noqa: F401, numpy's names of its types
import numpy as np
import torch

from tilewright.dialects import dtypes
from tilewright.dialects.epilogue import SCALAR_OPS
from tilewright.dialects.mlir import ir
from tilewright.runtime.bundles import manifest_fields as manifest
from tilewright.runtime.judge import epilogue
from tilewright.runtime.operands import tensors

EVALUATED_WITH_ATTRIBUTES = {"arith.constant", "arith.cmpf", "arith.truncf"}


def test_the_reference_evaluates_every_operation_an_epilogue_may_hold():
    assert set(SCALAR_OPS) <= set(epilogue.OPERATIONS) | EVALUATED_WITH_ATTRIBUTES


def test_a_manifest_and_the_runtime_take_every_dtype_a_kernel_may_have():
    assert set(dtypes.DTYPES) == set(tensors.ITEM_BYTES) == set(manifest.DTYPES.values)


def test_numpy_and_torch_know_every_dtype_by_its_name_and_size():
    for row in dtypes.DTYPES.values():
        assert getattr(torch, row.torch).itemsize == row.bytes
        assert all(np.dtype(name).itemsize == row.bytes for name in row.numpy)


def test_mlir_parses_every_dtype_with_its_width():
    with ir.Context():
        for row in dtypes.DTYPES.values():
            assert ir.Type.parse(row.mlir).width == row.bits
