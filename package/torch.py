"""tilewright in models of torch.

    enable, disable     let Inductor use the provider, or no longer
    report              what was done with each product, and why
    replace             a model whose linear layers multiply by our kernels, in place
    export, load        a model as a program with its kernels, which runs without the compiler
    register_operators  let torch read a program of its own that has operators of ours

`torch.compile(model, backend="tilewright")` needs none of them. torch is imported at the first
call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.inductor.report import Report

__all__ = ["disable", "enable", "export", "load", "register_operators", "replace", "report"]

OPERATORS = (
    "compiler.calls.dense.matmul_operator",
    "compiler.calls.grouped.grouped_operator",
    "compiler.calls.layers.linear_operator",
    "compiler.calls.weights.weight_operator",
    "compiler.inductor.operator",
    "runtime.launch.torch_op",
)


def enable(**options: Any) -> None:
    """Let every torch.compile of this process use the provider.

    options: device, target, race, processes and math, as `options=` of `backend="tilewright"` has
        them (docs/torch.md).

    Raises OptionError for an unknown option or a torch that has no place for it.
    """
    from .compiler.inductor.backend import enable as enable_provider

    enable_provider(**options)


def disable() -> None:
    """Leave every product to Inductor again."""
    from .compiler.inductor.backend import disable as disable_provider

    disable_provider()


def report() -> Report:
    """The products of the graphs that this process compiled: str() of it is a table."""
    from .compiler.inductor.report import report as found

    return found()


def replace(model: Any, only: Callable[[str, Any], bool] | None = None) -> Any:
    """The model with its linear layers multiplied by our kernels; `only` and errors as of
    `tilewright.nn.replace`."""
    from .nn import replace as replace_linear

    return replace_linear(model, only)


def export(
    model: Any,
    inputs: Sequence[Any],
    path: str | Path,
    *,
    dynamic_shapes: Any = None,
    target: str = "",
    math: str = "",
    processes: int = 0,
) -> None:
    """Write a model and its kernels to a new folder, for `load` (docs/torch.md).

    model: a torch.nn.Module.
    inputs: examples, which give the program its shapes, types and device.
    path: the folder, which must not be there.
    dynamic_shapes: sizes that only a call says, as torch.export takes them.
    target, math, processes: as of `enable`.

    Raises CompileError for a folder that is there, and for what torch.export cannot take.
    """
    from .compiler.inductor.export import export as export_model

    options = {"target": target, "math": math, "processes": processes}
    export_model(model, inputs, path, dynamic_shapes=dynamic_shapes, **options)


def load(path: str | Path) -> Any:
    """The model in the folder `path`, which `export` wrote; needs torch, and not the compiler.

    Loading a program can run any code: only of people whom you trust. Raises DeviceError for a
    folder of another kind, and BundleError for a damaged kernel.
    """
    from .runtime.launch.program import load_program

    return load_program(path)


def register_operators() -> None:
    """Make torch know our operators, which it otherwise does from the first call on.

    `torch.export.load` of a program with `matmul` in it needs them, where nothing has multiplied.

    Raises ModuleNotFoundError, with the extra to install, where there is no compiler.
    """
    from .runtime.extras import home_of

    for module in OPERATORS:
        home_of(f"{__package__}.{module}")
