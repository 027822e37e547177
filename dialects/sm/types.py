"""The dialect `sm` itself, its types, and what the verifiers of its ops share."""

import functools
from collections.abc import Sequence
from typing import Any, Self

from .. import llvm
from ..layout import MAJORS, SPAN_BYTES, UNIT_BYTES, TileLayout
from ..mlir import ext, ir
from ..verify import refuse

# Address spaces of LLVM for NVPTX.
GENERIC, GLOBAL, SHARED, TENSOR, CLUSTER = 0, 1, 3, 6, 7
# The 14 bits of a descriptor's fields count units of 16 bytes.
MATRIX_OFFSET_MAX = (2**14 - 1) * UNIT_BYTES
DESCRIPTOR_FIELDS = ("lbo", "sbo", "swizzle", "base_offset", "version")
CTA_GROUPS = (1, 2)
SCOPES = ("cta", "cluster")


class Sm(ext.Dialect, name="sm"):
    """What one CTA's hardware is asked to do."""


class Instruction(Sm.Operation):
    """An op of the dialect; `of` builds it."""

    @classmethod
    def of(cls, *operands: Any, **fields: Any) -> Self:
        """The op at the insertion point, with its attributes given as Python values.

        Operands stand in the order of the declaration, optional ones may be named.
        """
        wanted, attributes, results, regions = _parts_of(cls)
        given = [*operands, *(fields.get(field.name) for field in wanted[len(operands) :])]
        op = cls.__new__(cls)
        ir.OpView.__init__(  # the declared initializer binds a signature first, at thrice the cost
            op,
            cls.OPERATION_NAME,
            cls._ODS_REGIONS,
            cls._ODS_OPERAND_SEGMENTS,
            cls._ODS_RESULT_SEGMENTS,
            attributes={field.name: attribute_of(fields[field.name]) for field in attributes},
            results=[field.process_type(fields.get(field.name)) for field in results],
            operands=given,
            regions=len(regions) or None,
        )
        return op


@functools.cache
def _parts_of(op_class: type[Instruction]) -> Any:
    """The fields of an op: operands, attributes, results, regions."""
    return ext.partition_fields(op_class._fields)


def attribute_of(value: Any) -> ir.Attribute:
    """A string, truth value or integer as an attribute; an attribute as it is."""
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, bool):  # as a BoolAttr, false would stand for no attribute
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(1), int(value))
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return value


class DescriptorType(Sm.Type, name="descriptor"):
    """A matrix in shared memory as an MMA is told of it: every field but the address, by name.

    `lbo` and `sbo` are the leading and the stride dimension byte offset, `swizzle` is the layout
    type; `base_offset` and `version` are as in the PTX ISA (tcgen05, shared memory descriptor; the
    one of wgmma is the same with version 0).
    """

    fields_attr: ir.DictAttr

    @staticmethod
    def of(
        lbo: int, sbo: int, swizzle: str, version: int, base_offset: int = 0
    ) -> "DescriptorType":
        """The type of descriptors with those fields."""
        values = (lbo, sbo, swizzle, base_offset, version)
        fields = zip(DESCRIPTOR_FIELDS, values, strict=True)
        named = {name: attribute_of(value) for name, value in fields}
        return DescriptorType.get(ir.DictAttr.get(named))

    def number(self, field: str) -> int:
        """The integer field of that name."""
        return ir.IntegerAttr(ir.DictAttr(self.fields_attr)[field]).value

    @property
    def swizzle(self) -> str:
        return ir.StringAttr(ir.DictAttr(self.fields_attr)["swizzle"]).value


def matrix_fields(layout: TileLayout) -> tuple[int, int, str]:
    """LBO, SBO and swizzle of a tile, as a descriptor has them; block scales have no swizzle."""
    swizzle = "none" if layout.is_of_scales else layout.swizzle
    return (*layout.descriptor_strides(), swizzle)


def verify_descriptor(op: ext.Operation, type_: DescriptorType) -> bool:
    """Whether the fields of a descriptor are all there and have their widths."""
    names = [field.name for field in ir.DictAttr(type_.fields_attr)]
    if names != sorted(DESCRIPTOR_FIELDS):
        return refuse(
            op,
            f"a descriptor must have the fields {', '.join(sorted(DESCRIPTOR_FIELDS))}, got "
            f"{', '.join(names)}",
        )
    for name in ("lbo", "sbo"):
        if not verify_matrix_offset(op, name, type_.number(name)):
            return False
    if type_.swizzle not in SPAN_BYTES:
        return refuse(op, f"swizzle must be one of {tuple(SPAN_BYTES)}, got {type_.swizzle!r}")
    for name, most in (("base_offset", 7), ("version", 1)):
        if not 0 <= type_.number(name) <= most:
            return refuse(op, f"{name} must be 0 to {most}, got {type_.number(name)}")
    return True


def verify_matrix_offset(op: ext.Operation, name: str, value: int) -> bool:
    """Whether a byte offset is one that a descriptor can hold."""
    if value % UNIT_BYTES or not 0 <= value <= MATRIX_OFFSET_MAX:
        return refuse(
            op,
            f"{name} must be a multiple of {UNIT_BYTES} bytes up to {MATRIX_OFFSET_MAX}, "
            f"got {value}",
        )
    return True


def verify_half_operands(op: Any, step: int) -> bool:
    """Whether an MMA of 16-bit operands has types, N, and B by its descriptor that there are.

    `step` is of what N is a multiple.
    """
    types = [op.a_type.value, op.b_type.value, op.d_type.value]
    if types not in (["bf16", "bf16", "f32"], ["f16", "f16", "f32"]):
        shown = ", ".join(types)
        return refuse(op, f"a and b must both be bf16 or f16, summed in f32, got {shown}")
    n = op.n.value
    if n % step or not 0 < n <= 256:
        return refuse(op, f"n must be a multiple of {step} up to 256, got {n}")
    return verify_choice(op, "b_major", MAJORS) and verify_matrix_offset(
        op, "b_offset", op.b_offset.value
    )


def verify_choice(op: ext.Operation, name: str, choices: Sequence[Any]) -> bool:
    """Whether an attribute has one of the values that there are."""
    got = getattr(op, name).value
    return got in choices or refuse(op, f"{name} must be one of {tuple(choices)}, got {got!r}")


def verify_range(op: ext.Operation, name: str, least: int, most: int) -> bool:
    """Whether an integer attribute lies in a range."""
    got = getattr(op, name).value
    return least <= got <= most or refuse(op, f"{name} must be {least} to {most}, got {got}")


def verify_pointer(op: ext.Operation, name: str, *spaces: int) -> bool:
    """Whether an operand points to one of the address spaces."""
    got = getattr(op, name).type
    if isinstance(got, llvm.PointerType) and got.address_space in spaces:
        return True
    allowed = [f"!llvm.ptr<{space}>" if space else "!llvm.ptr" for space in spaces]
    return refuse(op, f"{name} must be {' or '.join(allowed)}, got {got}")
