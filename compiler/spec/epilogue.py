"""The text of an epilogue: scalar ops on an accumulator and on other operands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...dialects.dtypes import stored_dtype
from ...dialects.epilogue import FUNCTIONS
from ...dialects.epilogue_instructions import Step, instructions_of
from ...dialects.record import record
from .problem import BESIDE

OF_AXES = {"n": "beside_columns", "m": "beside_rows", "": "beside_rows"}


def hints_of_epilogue_operands(
    elements: Iterable[tuple[str, str]], rank: int
) -> dict[str, tuple[str, ...]]:
    """The hints of a spec that say what an epilogue reads, of each operand's axes and type.

    `rank` is that of C. Operands with a vector for each matrix of a stack are none of them.
    """
    found: dict[str, list[str]] = {name: [] for name in BESIDE}
    for axes, mlir in elements:
        dtype = stored_dtype(mlir)
        name = "beside" if len(axes) == rank and axes.endswith("mn") else OF_AXES.get(axes)
        if dtype is not None and name is not None:
            found[name].append(dtype.name)
    return {name: tuple(dtypes) for name, dtypes in found.items()}


@record
class EpilogueOperand:
    """A tensor that an epilogue reads: its element's name in the body, its type, and its axes.

    axes: which of C's dims index it, some of "b" (the matrix of a stack), "m" and "n", in this
    order. shape: as many sizes.
    """

    scalar: str
    type: str
    axes: str
    shape: tuple[int | str, ...]

    @property
    def tensor(self) -> str:
        """The type of the whole."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.type}>"


@record
class Epilogue:
    """What makes an element of C: `lines` of scalar ops on the sum and on the operands' elements.

    `sum` and `result` are the names of the first and the last scalar; `further` are those of the
    elements of further outputs. `reductions` says of each of these by what it is reduced over
    neighbours in a row, "" of one that is not; without it none is.
    `second` is the name of the sum of a second product.
    """

    sum: str
    operands: tuple[EpilogueOperand, ...]
    lines: tuple[str, ...]
    result: str
    further: tuple[str, ...] = ()
    reductions: tuple[str, ...] = ()
    second: str = ""

    def arguments(self) -> list[str]:
        """The arguments of the function, after those of the product."""
        return [f"%e{number}: {each.tensor}" for number, each in enumerate(self.operands)]

    @property
    def scalars(self) -> tuple[str, ...]:
        """The elements of all outputs."""
        return self.result, *self.further

    def instructions(self, outputs: Sequence[str]) -> int:
        """About how many instructions an element of outputs of these types takes."""
        return instructions_of(map(_step, self.lines), outputs)

    @property
    def has_functions(self) -> bool:
        """Whether it computes what `math=` is about."""
        return any(name in FUNCTIONS for name in ops_of(self))

    def beside(self, rank: int) -> dict[str, tuple[str, ...]]:
        """The types of the operands of a C of that rank, by the hint of a spec that they are."""
        return hints_of_epilogue_operands([(each.axes, each.type) for each in self.operands], rank)

    def results(self, name: str) -> list[str]:
        """The outputs of an op called so that gives all of them."""
        if not self.further:
            return [name]
        return [f"{name}#{number}" for number in range(len(self.scalars))]

    def generic(self, sizes: Sequence[int | str], sums: str, outputs: Sequence[str]) -> str:
        """Ops of linalg that make %c of %sum, tensors of these sizes; `outputs` are their elements'
        types. A dynamic size is "?", its number is %matrices or %rows."""
        axes = "bmn"[-len(sizes) :]
        shape = "".join(f"{size}x" for size in sizes)
        results = [f"tensor<{shape}{each}>" for each in outputs]
        places = [f"%c_init{number or ''}" for number in range(len(results))]
        names = ["%sum", *(f"%e{number}" for number in range(len(self.operands)))]
        types = [f"tensor<{shape}{sums}>", *(each.tensor for each in self.operands)]
        indices = [axes, *(each.axes for each in self.operands), *(axes for _ in results)]
        maps = [_map(axes, each) for each in indices]
        scalars = [
            f"{self.sum}: {sums}",
            *(f"{each.scalar}: {each.type}" for each in self.operands),
        ]
        yielded = f"linalg.yield {', '.join(self.scalars)} : {', '.join(outputs)}"
        body = "\n    ".join([*self.lines, yielded])
        numbers = {"b": "%matrices", "m": "%rows"}
        opened = ", ".join(
            numbers[axis] for axis, size in zip(axes, sizes, strict=True) if size == "?"
        )
        empty = "\n  ".join(
            f"{place} = tensor.empty({opened}) : {type_}"
            for place, type_ in zip(places, results, strict=True)
        )
        scalars += [f"%out{number or ''}: {each}" for number, each in enumerate(outputs)]
        several = f":{len(outputs)}" if self.further else ""
        returned = f"({', '.join(results)})" if self.further else results[0]
        return f"""{empty}
  %c{several} = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = [{", ".join('"parallel"' for _ in axes)}]}}
    ins({", ".join(names)} : {", ".join(types)}) outs({", ".join(places)} : {", ".join(results)}) {{
  ^bb0({", ".join(scalars)}):
    {body}
  }} -> {returned}"""

    def region(
        self,
        sums: str,
        outputs: Sequence[str],
        group: int = 0,
        quantize: tuple[str, str] | None = None,
    ) -> str:
        """The block of a `tile` op's epilogue; `quantize` is the text of a last op that makes C's
        element of the result, and the element's type."""
        reads = (
            f'{each.scalar} = "tile.element"(%e{number}) {{axes = "{each.axes}"}}'
            f" : ({each.tensor}) -> {each.type}"
            for number, each in enumerate(self.operands)
        )
        c, *others = outputs
        kinds = self.reductions or ("",) * len(others)
        kept = [
            f'"tile.keep_groups"({name}) {{group = {group} : i64, reduce = "{kind}"}} : (f32) -> ()'
            if kind
            else f'"tile.keep"({name}) : ({type_}) -> ()'
            for name, type_, kind in zip(self.further, others, kinds, strict=True)
        ]
        last = [f'"tile.yield"({self.result}) : ({c}) -> ()']
        if quantize:
            made, element = quantize
            last = [f"%quantized = {made}", f'"tile.yield"(%quantized) : ({element}) -> ()']
        lines = [*reads, *self.lines, *kept, *last]
        taken = ", ".join(f"{name}: {sums}" for name in (self.sum, self.second) if name)
        return f"^bb0({taken}):\n    " + "\n    ".join(lines)


def ops_of(epilogue: Epilogue | None) -> list[str]:
    """The names of an epilogue's ops, in order."""
    lines = epilogue.lines if epilogue else ()
    return [line.partition(" = ")[2].partition(" ")[0] for line in lines]


def _map(all_axes: str, axes: str) -> str:
    return f"affine_map<({', '.join(all_axes)}) -> ({', '.join(axes)})>"


def _step(line: str) -> Step:
    """A line of MLIR, `%v2 = arith.mulf %v1, %e0 : f32`."""
    result, _, op = line.partition(" = ")
    name, _, rest = op.partition(" ")
    return Step(name, result, re.findall(r"%\w+", rest))
