"""A module of linalg on tensors, evaluated: `Source`."""

# The upstream builders have no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...dialects.context import one_thread_at_a_time
from ...dialects.errors import CompileError
from ...dialects.mlir import ir, passmanager
from ...runtime.judge.double_sums import double_sums
from ...runtime.judge.intervals import Interval
from ...runtime.judge.relaxed import any_function
from ...runtime.judge.sums import accumulator_interval, product_of_integers, sums_of_floats
from . import structured
from .scalars import evaluate, kept, stored
from .structured import Undefined
from .values import Value, element_type, places, refuse

GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"
TF32_MASK = 0xFFFF_E000


class Source:
    """The one function of a module of linalg on tensors.

    arguments: the MLIR type of each argument's elements and its shape. results: the same of what is
    returned. Raises CompileError for what is no such module, and from `evaluate` for ops that
    aren't evaluated.
    """

    @one_thread_at_a_time
    def __init__(self, text: str, name: str):
        self.name = name
        self.context = ir.Context()
        with self.context, _named(name):
            self.module = _parsed(text, name)
            passmanager.PassManager.parse(GENERALIZE).run(self.module.operation)
            self.function = _only_function(self.module, name)
            block = self.function.regions[0].blocks[0]
            self.arguments = [_tensor_type(self.function, each.type) for each in block.arguments]
            self.argument_strides = _stated_strides(self.function, "arg_attrs", len(self.arguments))
            returned = list(block.operations)[-1].operands
            if not len(returned):
                refuse(list(block.operations)[-1], "function of no result")
            self.results = [_tensor_type(self.function, each.type) for each in returned]
            self.result_strides = _stated_strides(self.function, "res_attrs", len(returned))

    @property
    def has_functions(self) -> bool:
        """Whether a policy for the error of functions says anything of this source."""
        names = set()

        def visit(operation: Any) -> Any:
            names.add(operation.name)
            return ir.WalkResult.ADVANCE

        self.module.operation.walk(visit)
        return any_function(names)

    def evaluate(self, arguments: Sequence[np.ndarray], **how: bool) -> Interval:
        """What the function may return first; `how` is as of `evaluate_all`."""
        return self.evaluate_all(arguments, **how)[0]

    @one_thread_at_a_time
    def unread(self) -> dict[int, np.ndarray]:
        """For arguments that only linalg.generic reads, a mask of the elements that nothing
        reads."""
        block, found = self.function.regions[0].blocks[0], {}
        with self.context, _named(self.name):
            for number, argument in enumerate(block.arguments):
                read = np.zeros(argument.type.shape, bool)
                for use in argument.uses:
                    read |= _read_by(use, read.shape)
                if not read.all() and list(argument.uses):
                    found[number] = ~read
        return found

    @one_thread_at_a_time
    def evaluate_all(
        self,
        arguments: Sequence[np.ndarray],
        hopper_gpu: bool = False,
        keeps_digits: bool = False,
        by_fma: bool = False,
    ) -> list[Interval]:
        """What the function may return: limits as of any float32 code that does what it says.

        The arguments are float64 or int64. hopper_gpu: products of 8-bit floats are summed as the
        tensor cores of a Hopper GPU sum them (`runtime.judge.sums`). keeps_digits: narrow floats
        may also be unrounded in between, as where an operator of torch stands for several ops.
        by_fma: f32 is multiplied with all its digits, as threads do it.
        """
        block = self.function.regions[0].blocks[0]
        values: dict[Any, Any] = {
            each: np.asarray(given, np.int64)
            if given.dtype.kind in "iu"
            else Interval.exactly(given)
            for each, given in zip(block.arguments, arguments, strict=True)
        }
        with self.context, np.errstate(all="ignore"), _named(self.name), kept(keeps_digits):
            found = _Run(hopper_gpu, by_fma).block(block, values)
        return [each if isinstance(each, Interval) else Interval.exactly(each) for each in found]


class _Run:
    """One evaluation."""

    def __init__(self, hopper_gpu: bool, by_fma: bool):
        self.hopper_gpu, self.by_fma = hopper_gpu, by_fma

    def block(self, block: Any, values: dict[Any, Any]) -> list[Value]:
        """What the terminator takes, after every op before it."""
        *computed, last = list(block.operations)
        for op in computed:
            results = self._op(op.operation.opview, values)
            for result, value in zip(op.operation.results, results, strict=True):
                values[result] = value
        return [_defined(last, values[operand]) for operand in last.operands]

    def _op(self, op: Any, values: dict[Any, Any]) -> list[Any]:
        name = op.operation.name
        inputs = [values[operand] for operand in op.operands]
        if name == "tensor.empty":
            return [Undefined()]
        if name == "linalg.generic":
            body = _with_outer(self, values)
            return structured.generic(op, inputs, self._sums, body)
        if op.operation.regions or not op.operation.results:
            refuse(op, "such op")
        if name in SHAPES:
            return [SHAPES[name](op, _defined(op, inputs[0]))]
        value = evaluate(op, [_defined(op, each) for each in inputs])
        type_ = op.operation.results[0].type
        whole = isinstance(type_, ir.RankedTensorType)
        return [stored(value, element_type(type_)) if whole else value]

    def _sums(self, op: Any, a: Value, b: Value) -> Value:
        """A [m, k] · b [n, k]ᵀ."""
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return product_of_integers(a, b)
        assert isinstance(a, Interval) and isinstance(b, Interval)
        for each in (a, b):
            if not (np.array_equal(each.low, each.high, equal_nan=True)):
                refuse(op, "product of what was rounded before")
        if element_type(op.operation.results[0].type) == "f64":
            return double_sums(a.middle, b.middle)
        if self.by_fma:
            return accumulator_interval(a.middle, b.middle)
        return sums_of_floats(_as_tf32(a.middle), _as_tf32(b.middle), self.hopper_gpu)


def _read_by(use: Any, shape: Sequence[int]) -> np.ndarray:
    """Which elements of an argument an op reads."""
    if use.owner.name != "linalg.generic":
        return np.ones(shape, bool)
    read = np.zeros(shape, bool)
    read[structured.Loops.of(use.owner.opview).places(use.operand_number)] = True
    return read


def _with_outer(run: _Run, outer: Mapping[Any, Any]) -> structured.Body:
    """The body of a linalg.generic, which may use what was computed outside."""

    def body(op: Any, inputs: Sequence[Any]) -> list[Value]:
        block = op.regions[0].blocks[0]
        return run.block(block, {**outer, **dict(zip(block.arguments, inputs, strict=True))})

    return body


def _reshaped(op: Any, value: Value) -> Value:
    return places(value, lambda part: part.reshape(op.operation.results[0].type.shape))


def _splat(op: Any, value: Value) -> Value:
    shape = op.operation.results[0].type.shape
    return places(value, lambda part: np.broadcast_to(part, shape))


def _sliced(op: Any, value: Value) -> Value:
    offsets, sizes, steps = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "sizes", "strides")
    )
    if len(op.operands) > 1 or sizes != list(op.results[0].type.shape):
        refuse(op, "slice by numbers that the text does not say, or of fewer dims")
    ends = [first + count * step for first, count, step in zip(offsets, sizes, steps, strict=True)]
    chosen = tuple(map(slice, offsets, ends, steps))
    return places(value, lambda part: part[chosen])


SHAPES = {
    "tensor.expand_shape": _reshaped,
    "tensor.extract_slice": _sliced,
    "tensor.collapse_shape": _reshaped,
    "tensor.cast": lambda op, value: value,
    "tensor.splat": _splat,
}


def _as_tf32(values: np.ndarray) -> np.ndarray:
    """What a tensor core reads of f32: all but the low 13 bits. Narrower floats have none there.

    PTX ISA, alternate floating-point formats. MLIR has no such product, so that the compiler takes
    f32 operands as these, with a remark.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(TF32_MASK)
    return bits.view(np.float32).astype(np.float64)


def _defined(op: Any, value: Any) -> Value:
    if isinstance(value, Undefined):
        refuse(op, "value of a tensor.empty, which has none")
    return value


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors at a line of the text get the text's name, which the parser wasn't told."""
    try:
        yield
    except CompileError as error:
        if not (error.location or "").startswith("-:"):
            raise
        raise CompileError(error.message, f"{name}{(error.location or '')[1:]}") from error


def _parsed(text: str, name: str) -> Any:
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        rule = "a source must be linalg on tensors, and not what a pass left"
        raise CompileError(f"{name}: {rule}, got: {error}") from error


def _only_function(module: Any, name: str) -> Any:
    found = [op.operation for op in module.body.operations]
    if len(found) != 1 or found[0].name != "func.func":
        names = ", ".join(op.name for op in found)
        raise CompileError(f"{name}: must be one func.func for the reference, got {names}")
    if len(found[0].regions[0].blocks) != 1:
        refuse(found[0], "function of several blocks")
    return found[0]


def _stated_strides(function: Any, which: str, count: int) -> list[list[int] | None]:
    """The strides that the source states for each argument or result; None if it states none."""
    if which not in function.attributes:
        return [None] * count
    stated = []
    for attributes in map(ir.DictAttr, ir.ArrayAttr(function.attributes[which])):
        found = {each.name: each.attr for each in attributes}
        layout = found.pop("bufferization.buffer_layout", None)
        if found or not isinstance(layout, ir.StridedLayoutAttr | None):
            refuse(function, f"argument or result with {attributes}")
        stated.append(None if layout is None else list(layout.strides))
    return stated


def _tensor_type(function: Any, type_: Any) -> tuple[str, tuple[int, ...]]:
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        refuse(function, f"argument or result of type {type_}")
    return str(type_.element_type), tuple(type_.shape)
