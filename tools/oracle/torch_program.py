"""A file of torch.export.save as the reference: torch itself runs the program on the CPU.

torch gives one result; how far a kernel may be from it, the linalg says that the program is
imported as. Where torch's result is none that this linalg may give, the import is wrong, and the
kernel is held to torch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime.judge.intervals import Interval
from .interpreter import Source
from .tensors import as_numbers, random_arguments

TF32_MASK = ~0x1FFF


class TorchProgram:
    """A torch module with example inputs, and the linalg that it is imported as.

    text: a function of the inputs, then of the module's parameters and buffers by `names`.
    """

    def __init__(self, module: Any, names: Sequence[str], text: str, name: str):
        self.module, self.names = module, names
        self.source = Source(text, name)

    def arguments(self, seed: int) -> list[Any]:
        """Random inputs, parameters and buffers; f32 has no digits that tensor cores drop."""
        return [_without_low_bits(each) for each in random_arguments(self.source.arguments, seed)]

    def evaluate(self, arguments: Sequence[Any], hopper_gpu: bool) -> Interval:
        """What a kernel may give first."""
        return self.evaluate_all(arguments, hopper_gpu)[0]

    def evaluate_all(
        self, arguments: Sequence[Any], hopper_gpu: bool, by_fma: bool = False
    ) -> list[Interval]:
        """What a kernel may give for the arguments."""
        numbers, returned = [as_numbers(each) for each in arguments], self._run(arguments)
        actual = [as_numbers(each) for each in _several(returned)]
        limits = self.source.evaluate_all(numbers, hopper_gpu, by_fma=by_fma)
        wide = self.source.evaluate_all(numbers, hopper_gpu, keeps_digits=True)
        return [held_to(*each) for each in zip(actual, limits, wide, strict=True)]

    def _run(self, arguments: Sequence[Any]) -> Any:
        import torch

        count = len(arguments) - len(self.names)
        state = dict(zip(self.names, arguments[count:], strict=True))
        with torch.no_grad():
            return torch.func.functional_call(self.module, state, tuple(arguments[:count]))


def _several(returned: Any) -> list[Any]:
    return list(returned) if isinstance(returned, tuple | list) else [returned]


def held_to(actual: np.ndarray, limits: Interval, wide: Interval) -> Interval:
    """`limits` where torch's result is one that its linalg may give (`wide`), else that result."""
    possible = (actual >= wide.low) & (actual <= wide.high) | (np.isnan(actual) & wide.nan)
    low, high = (np.where(possible, part, actual) for part in (limits.low, limits.high))
    return Interval(low, actual, high, np.where(possible, limits.nan, np.isnan(actual)))


def _without_low_bits(argument: Any) -> Any:
    import torch

    if argument.dtype != torch.float32:
        return argument
    return (argument.view(torch.int32) & TF32_MASK).view(torch.float32)
