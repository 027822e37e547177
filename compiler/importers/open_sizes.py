"""Whether a function of tensors is the same for all sizes of some dims.

Its operators are looked at with symbols for these sizes: a branch on one of them, and a number that
is made of one, tell that the function depends on it. Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from .quiet import quiet
from .traced_function import TensorLike

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode


def depends_on_sizes(
    function: Callable[..., Any], values: Sequence[TensorLike], opened: Sequence[Collection[int]]
) -> bool:
    """Whether `function` of values like these reads the sizes of the dims that are `opened`.

    Dims that are opened count as the same where they have the same size. A function that takes no
    symbols depends on sizes, too.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    sizes = ShapeEnv()
    with quiet(), torch.no_grad(), FakeTensorMode(shape_env=sizes) as mode:
        fakes = [_fake(*each, mode, n) for n, each in enumerate(zip(values, opened, strict=True))]
        watching = _watching()
        try:
            with watching:
                function(*fakes)
        except Exception:  # a user's function raises any kind
            return True
    return bool(sizes.guards) or watching.is_number


def _fake(value: TensorLike, opened: Collection[int], mode: FakeTensorMode, number: int) -> Any:
    """A tensor of no memory, with symbols for the sizes of the dims that are opened."""
    import torch
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    sizes = mode.shape_env
    assert sizes is not None

    def symbol(dim: int, size: int) -> Any:
        source = ConstantSource(f"size_{number}_{dim}")
        found = sizes.create_symbol(size, source, DimDynamic.DUCK)
        return sizes.create_symintnode(found, hint=size, source=source)

    shape = [symbol(*e) if e[0] in opened else e[1] for e in enumerate(value.shape)]
    return torch.empty(shape, dtype=value.dtype)


def _watching() -> Any:
    """A mode under which is seen whether an operator takes a size as a number."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    symbols = torch.SymInt, torch.SymFloat, torch.SymBool

    class Watching(TorchDispatchMode):
        is_number = False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = zip(func._schema.arguments, args, strict=False)
            others = (each for each in func._schema.arguments if each.name in (kwargs or {}))
            given = [*named, *((each, (kwargs or {})[each.name]) for each in others)]
            for declared, value in given:
                if isinstance(value, symbols) and "int" not in str(declared.type).lower():
                    self.is_number = True
            return func(*args, **(kwargs or {}))

    return Watching()
