"""Strides of operands: which kernels read in place, and which are copied.

A matrix is read in place where one of its two dims is contiguous and steps along the other one
pass over whole rows: slices of rows and of columns, transposes, heads of attention. TMA asks for
rows and matrices that are multiples of 16 bytes apart (cuTensorMapEncodeTiled). Where they are not,
and those of a copy would be, it is worth the copy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....dialects import legality
from ....dialects.errors import OptionError
from ....dialects.target import Target, find_target
from ....runtime.element_types import is_torch
from ....runtime.operands.copies import warn_of_copy
from ....runtime.operands.results import copy_as_it_lies
from ....runtime.operands.tensors import offset_bytes

ALIGNMENT_BYTES = 16
EXTENT_MAX = 2**31 - 1
NO_GAPS = (0, 0)


class Placement(NamedTuple):
    """How a matrix lies, or a stack of them.

    `major` is the dim of the last two that is contiguous, 1 or 0. `leading` and `step` are the
    elements from row to row and from matrix to matrix, 0 where there are no gaps.
    """

    major: int
    leading: int = 0
    step: int = 0


def placement(shape: Sequence[int], strides: Sequence[int]) -> Placement | None:
    """How a matrix or a stack lies, None where no kernel reads it so; strides in elements."""
    for major in (1, 0):
        rows, contiguous = shape[-1 - major], shape[-2 + major]
        pitch, unit = strides[-1 - major], strides[-2 + major]
        if contiguous > 1 and unit != 1:
            continue
        if rows > 1 and pitch < contiguous:
            continue
        leading = pitch if rows > 1 else 0
        found = _stacked(shape, strides, Placement(major, leading))
        if found is not None:
            dense = found.leading in (0, contiguous)
            return found._replace(leading=0 if dense else leading)
    return None


def _stacked(shape: Sequence[int], strides: Sequence[int], one: Placement) -> Placement | None:
    """With the step from matrix to matrix; None where matrices share elements."""
    if len(shape) == 2 or shape[0] <= 1:
        return one
    rows, contiguous = shape[-1 - one.major], shape[-2 + one.major]
    pitch, step = one.leading or contiguous, strides[0]
    if step == rows * pitch:
        return one
    apart = step > (rows - 1) * pitch + contiguous - 1
    between = contiguous <= step and (shape[0] - 1) * step + contiguous <= pitch
    return one._replace(step=step) if apart or between else None


def read_in_place(
    name: str,
    array: Any,
    target: str,
    gaps: bool = True,
    apart: bool = True,
    any_rows: bool = False,
) -> Any:
    """The array, or a copy without gaps where the target's kernels don't read it as it lies.

    gaps: whether the kernel that is meant reads arrays with gaps at all. apart: whether it reads
    matrices of a stack that do not lie one after the other. any_rows: whether it is one for any
    number of rows, which are then the length of what lies along K where they are contiguous.
    """
    if is_torch(array) and array.layout is not sys.modules["torch"].strided:
        raise OptionError(f"{name} must be dense, got {array.layout}; convert it")
    strides = _strides(array)
    if strides is None or len(strides) not in (2, 3):
        return array
    chip = find_target(target)
    found = placement(array.shape, strides)
    reason = _unreadable(array, strides, found, chip)
    if reason is None and not gaps and found is not None and found[1:] != NO_GAPS:
        reason = f"strides {list(strides)} have gaps, which this kind of product does not read"
    if reason is None and not apart and found is not None and found.step:
        rule = "matrices of any number of rows must be stored one after the other"
        reason = f"{rule}, got strides {[*strides]}"
    if reason is None and any_rows and found is not None and found.major == 0 and found.leading:
        reason = f"any number of rows that are contiguous have no gaps, got strides {[*strides]}"
    if reason is None:
        return array
    check_extents(name, array)
    warn_of_copy(name, array, reason)
    keeps = found is None or found.major == 1 or _reads_mn(array, chip)
    return _copied(array, found is not None and found.major == 0 and keeps)


def check_rows_along_k(name: str, array: Any, target: str) -> None:
    """Refuse a type that the target's MMA does not read with rows in memory along K."""
    chip = find_target(target)
    if not _reads_mn(array, chip):
        rule = f"{name} must be of a type that {chip.chip} multiplies with rows along K"
        raise OptionError(f"{rule} where k is dynamic, got {array.dtype}; leave k out")


def _unreadable(
    array: Any, strides: Sequence[int], found: Placement | None, target: Target
) -> str | None:
    """Why kernels of the target don't read an array as it lies."""
    if found is None:
        return f"strides {list(strides)} leave no dim contiguous, or elements are shared"
    if found.major == 0 and not _reads_mn(array, target):
        return f"{target.chip} multiplies {array.dtype} with K contiguous; store it so"
    if (found.leading, found.step) == NO_GAPS or legality.tma(target):
        return None
    contiguous = array.shape[-2 + found.major] * array.itemsize
    steps = [each * array.itemsize for each in (found.leading, found.step)]
    if contiguous % ALIGNMENT_BYTES == 0 and any(each % ALIGNMENT_BYTES for each in steps):
        return f"TMA needs rows that are multiples of {ALIGNMENT_BYTES} bytes apart, got {steps[0]}"
    return None


def _reads_mn(array: Any, target: Target) -> bool:
    """Whether the target multiplies the type with M or N contiguous; threads do any of 8 bytes."""
    return array.itemsize in (*target.mma.mn_major_bytes, 8)


def why_copied(array: Any, target: str) -> str | None:
    """Why kernels of a chip read a copy of a torch tensor, and not what lies there; None if not."""
    found = placement(array.shape, array.stride())
    return _unreadable(array, array.stride(), found, find_target(target))


def aligned(name: str, array: Any) -> Any:
    """The array, or a copy with its strides where TMA can't take its address."""
    if _start(array) % ALIGNMENT_BYTES == 0:
        return array
    reason = f"its address is no multiple of {ALIGNMENT_BYTES} bytes, as TMA needs it"
    warn_of_copy(name, array, reason)
    if not is_torch(array):
        return copy_as_it_lies(array)
    detached = array.detach()
    return detached.new_empty_strided(array.shape, array.stride()).copy_(detached)


def _start(array: Any) -> int:
    """The address; of numpy, for the emulator, that within the allocation."""
    if is_torch(array):
        return array.data_ptr()
    return offset_bytes(array) if type(array).__module__ == "numpy" else 0


def row_by_row(name: str, array: Any) -> Any:
    """The array row by row without gaps, or a copy that is, which a warning tells of."""
    if array.is_contiguous() if is_torch(array) else array.flags.c_contiguous:
        return array
    check_extents(name, array)
    warn_of_copy(name, array, f"strides {list(_strides(array) or ())} have gaps, or another order")
    return array.contiguous() if is_torch(array) else array.copy(order="C")


def check_extents(name: str, array: Any) -> None:
    """Refuse, before it is copied, an array that is longer than a kernel counts."""
    if max(array.shape, default=0) > EXTENT_MAX:
        rule = f"{name} must have at most {EXTENT_MAX} elements along each dim"
        raise OptionError(f"{rule}, got {list(array.shape)}; multiply in parts")


def _copied(array: Any, transposed: bool) -> Any:
    """The array without gaps, at a new address; its last two dims exchanged in memory if asked."""
    if transposed:
        return _copied(array.swapaxes(-1, -2), False).swapaxes(-1, -2)
    if is_torch(array):
        return array.detach().clone(memory_format=sys.modules["torch"].contiguous_format)
    return array.copy(order="C")


def gaps_of(out: Any) -> tuple[int, int]:
    """(elements from row to row, from matrix to matrix) of an output; 0 where there is no gap.

    An output that no kernel writes has no gaps here, and is refused at the launch.
    """
    found = None if out is None else _placed(out)
    return (found.leading, found.step) if found and found.major == 1 else NO_GAPS


def is_column_major(out: Any) -> bool:
    """Whether the columns of an output are contiguous, and its rows are not."""
    found = None if out is None else _placed(out)
    return found is not None and found.major == 0


def why_unwritten(out: Any, by_rows: str = "") -> str | None:
    """Why no kernel writes an output of torch where it lies, though a copy of the result fits.

    None where one does, and where elements share memory or the array is another's, whose launch is
    refused. by_rows: what writes only row-major ones.
    """
    if not is_torch(out) or out.dim() < 2 or 0 in out.shape or _overlaps(out):
        return None
    if out.data_ptr() % ALIGNMENT_BYTES:
        return f"its address is no multiple of {ALIGNMENT_BYTES} bytes"
    if out.dim() > 3:
        return None
    found = _placed(out)
    if found is None:
        return f"strides {list(out.stride())} are those of no matrix that a kernel writes"
    if by_rows and found.major == 0:
        return f"it is column-major, and {by_rows} writes rows"
    return None


def _overlaps(tensor: Any) -> bool:
    """Whether two elements may share memory."""
    end = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= end:
            return True
        end += stride * (size - 1)
    return False


def _placed(array: Any) -> Placement | None:
    strides = _strides(array)
    if strides is None or len(strides) not in (2, 3):
        return None
    return placement(array.shape, strides)


def _strides(array: Any) -> Sequence[int] | None:
    """The strides of a torch or numpy array in elements; None for other arrays."""
    if is_torch(array):
        return array.stride()
    if type(array).__module__ == "numpy":
        return [stride // array.itemsize for stride in array.strides]
    return None
