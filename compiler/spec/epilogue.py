"""The text of an epilogue: scalar ops on a sum and on the elements of operands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EpilogueOperand:
    """A tensor that an epilogue reads: its element's name in the body, its type, and its axes.

    axes: which of C's dims index it, some of "b" (the matrix of a stack), "m" and "n", in this
    order. shape: as many sizes.
    """

    scalar: str
    type: str
    axes: str
    shape: tuple[int, ...]

    @property
    def tensor(self) -> str:
        """The type of the whole."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.type}>"


@dataclass(frozen=True)
class Epilogue:
    """What makes an element of C: `lines` of scalar ops on the sum and on the operands' elements.

    `sum` and `result` are the names of the first and the last scalar.
    """

    sum: str
    operands: tuple[EpilogueOperand, ...]
    lines: tuple[str, ...]
    result: str

    def arguments(self) -> list[str]:
        """The arguments of the function, after those of the product."""
        return [f"%e{number}: {each.tensor}" for number, each in enumerate(self.operands)]

    def generic(self, sizes: Sequence[int], sums: str, c: str) -> str:
        """Ops of linalg that make %c of %sum, tensors of these sizes and of these elements."""
        axes = "bmn"[-len(sizes) :]
        shape = "".join(f"{size}x" for size in sizes)
        result = f"tensor<{shape}{c}>"
        names = ["%sum", *(f"%e{number}" for number in range(len(self.operands)))]
        types = [f"tensor<{shape}{sums}>", *(each.tensor for each in self.operands)]
        maps = [_map(axes, each) for each in (axes, *(each.axes for each in self.operands), axes)]
        scalars = [
            f"{self.sum}: {sums}",
            *(f"{each.scalar}: {each.type}" for each in self.operands),
        ]
        body = "\n    ".join([*self.lines, f"linalg.yield {self.result} : {c}"])
        return f"""%c_init = tensor.empty() : {result}
  %c = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = [{", ".join('"parallel"' for _ in axes)}]}}
    ins({", ".join(names)} : {", ".join(types)}) outs(%c_init : {result}) {{
  ^bb0({", ".join(scalars)}, %out: {c}):
    {body}
  }} -> {result}"""

    def region(self, sums: str, c: str) -> str:
        """The block of a `tile` op's epilogue."""
        reads = (
            f'{each.scalar} = "tile.element"(%e{number}) {{axes = "{each.axes}"}}'
            f" : ({each.tensor}) -> {each.type}"
            for number, each in enumerate(self.operands)
        )
        last = f'"tile.yield"({self.result}) : ({c}) -> ()'
        return f"^bb0({self.sum}: {sums}):\n    " + "\n    ".join([*reads, *self.lines, last])


def _map(all_axes: str, axes: str) -> str:
    return f"affine_map<({', '.join(all_axes)}) -> ({', '.join(axes)})>"
