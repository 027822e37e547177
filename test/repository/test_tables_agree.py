"""Tables that two packages keep for themselves, because one may not import the other, agree."""

from tilewright.dialects import dtypes
from tilewright.dialects.epilogue import SCALAR_OPS
from tilewright.runtime.bundles import manifest
from tilewright.runtime.judge import epilogue
from tilewright.runtime.operands import tensors

EVALUATED_WITH_ATTRIBUTES = {"arith.constant", "arith.cmpf", "arith.truncf"}


def test_the_reference_evaluates_every_operation_an_epilogue_may_hold():
    assert set(SCALAR_OPS) <= set(epilogue.OPERATIONS) | EVALUATED_WITH_ATTRIBUTES


def test_the_runtime_binds_every_dtype_a_kernel_may_have():
    assert set(dtypes.DTYPES) == set(tensors.ITEM_BYTES) == set(manifest.DTYPES.values)
    assert all(tensors.ITEM_BYTES[name] == row.bytes for name, row in dtypes.DTYPES.items())
