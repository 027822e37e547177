"""What is tested: a callable of torch or numpy arrays, or a bundle, behind one interface."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..element_types import TORCH_NAMES, is_torch
from ..errors import LaunchError
from ..judge.intervals import Interval
from ..judge.reference import to_float64
from .cases import DENSE, Layout, Size
from .operands import Placed, place
from .verdicts import rounded

B_SHAPES = ("kn", "nk")
# Of types that are alike in memory, the one that is an operand by itself.
NAMES_OF_TORCH = {TORCH_NAMES[name]: name for name in reversed(TORCH_NAMES) if name != "tf32"}
USUAL_SIZE = (129, 72, 96)
"""M, N and K of cases that are not about sizes: two tiles and a part, a part, two K steps."""


class OutOfDomain(LaunchError):
    """The subject says itself that it does not take such a case."""


@dataclass(frozen=True)
class Product:
    """A result: a torch tensor, its dtype's name, and the kinds of warnings that the judge gave."""

    result: Any
    dtype: str
    warnings: Sequence[str] = ()

    def values(self) -> np.ndarray:
        """The result in float64."""
        return values_of(self.result, self.dtype)


class Subject(Protocol):
    """An implementation of C[m,n] = A · B.

    size: the one that it takes, or the usual one. any_size, layouts, calls: whether it takes other
    sizes, operands that lie otherwise, and calls other than plain ones. any_rows: whether it takes
    other M's, with its own N and K. device: "cpu", a GPU, or "emulator". a_layout, b_layout: how
    operands lie where a case does not say. b_shape: "kn" for A[m,k]·B[k,n], "nk" for B[n,k].
    """

    name: str
    dtypes: tuple[str, str]
    b_shape: str
    device: str
    size: Size
    any_size: bool
    any_rows: bool
    layouts: bool
    calls: bool
    a_layout: Layout
    b_layout: Layout

    @property
    def memory(self) -> str:
        """Where operands lie, as torch names it."""
        ...

    @property
    def takes_out(self) -> bool:
        """Whether it writes an output that it is given."""
        ...

    def product(self, a: Placed, b: Placed, out: Placed | None = None, seed: int = 0) -> Product:
        """The result, in `out` if that is given; `seed` orders the emulator's events. Any exception
        may come instead."""
        ...

    def expected(self, sums: Interval, c_dtype: str) -> Interval:
        """What the result may be, for what the sums may be."""
        ...


@dataclass
class CallableSubject:
    """A Python function of A and B. `out`: the keyword of a given output, None without one."""

    name: str
    function: Callable[..., Any]
    dtypes: tuple[str, str]
    b_shape: str
    device: str = "cpu"
    arrays: str = "torch"
    out: str | None = None
    size: Size = USUAL_SIZE
    any_size: bool = True
    any_rows: bool = False
    layouts: bool = True
    calls: bool = True
    a_layout: Layout = DENSE
    b_layout: Layout = DENSE

    @property
    def memory(self) -> str:
        return self.device

    @property
    def takes_out(self) -> bool:
        return self.out is not None

    def product(self, a: Placed, b: Placed, out: Placed | None = None, seed: int = 0) -> Product:
        del seed
        given = [_as_array(each, self.arrays) for each in (a, b)]
        keywords = {} if out is None else {str(self.out): _as_array(out, self.arrays)}
        return _named_result(self.function(*given, **keywords))

    def expected(self, sums: Interval, c_dtype: str) -> Interval:
        return rounded(sums, c_dtype)


def subject_of(
    text: str,
    *,
    dtypes: tuple[str, str] = ("bf16", "bf16"),
    b_shape: str | None = None,
    device: str = "cpu",
    arrays: str = "torch",
) -> CallableSubject:
    """The callable that `text` names: MODULE:NAME or FILE.py:NAME, for example torch:matmul.

    b_shape: how it takes B; None finds out by a call. Raises LaunchError for what can't be loaded,
    or takes neither [k, n] nor [n, k]. Loading runs the module's code.
    """
    function = load_function(text)
    subject = CallableSubject(text, function, dtypes, b_shape or "", device, arrays)
    subject.out = _out_keyword(function)
    if b_shape is None:
        subject.b_shape = _find_shape(subject)
    return subject


def load_function(text: str) -> Callable[..., Any]:
    """The function that `MODULE:NAME` or `FILE.py:NAME` names; LaunchError where there is none."""
    module, _, name = text.rpartition(":")
    if not module or not name:
        raise LaunchError(f"{text}: must be MODULE:NAME or FILE.py:NAME, as torch:matmul")
    try:
        loaded = (
            _load_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        )
        function = functools.reduce(getattr, name.split("."), loaded)
    except (Exception, SystemExit) as error:  # a stranger's module raises anything
        got = f"{type(error).__name__}: {error}".splitlines()[0]
        raise LaunchError(f"{text}: must be a function that can be loaded, got {got}") from error
    if not callable(function):
        raise LaunchError(f"{text}: must be callable, got {type(function).__name__}")
    return function


def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _out_keyword(function: Callable[..., Any]) -> str | None:
    """`out`, if the function says that it takes one; torch's built-in operators do."""
    try:
        return "out" if "out" in inspect.signature(function).parameters else None
    except (TypeError, ValueError):
        return "out" if "out=" in (function.__doc__ or "") else None


def _find_shape(subject: CallableSubject) -> str:
    """How the function takes B, by a product that only one of the two shapes allows."""
    m, n, k = 16, 48, 32
    refusals = []
    for shape, b_shape in zip(B_SHAPES, ((k, n), (n, k)), strict=True):
        a, b = (
            place(np.ones(each), dtype, Layout(), subject.memory)
            for each, dtype in zip(((m, k), b_shape), subject.dtypes, strict=True)
        )
        try:
            result = subject.product(a, b).result
        except (Exception, SystemExit) as error:  # a subject may raise anything
            refusals.append(f"[{shape}]: {type(error).__name__}: {error}".splitlines()[0])
            continue
        if tuple(result.shape) == (m, n):
            return shape
        refusals.append(f"[{shape}]: a result of shape {tuple(result.shape)}")
    raise LaunchError(
        f"{subject.name}: must multiply [m, k] by [k, n] or [n, k] of {subject.dtypes[0]},"
        f" got {'; '.join(refusals)}; choose types that it takes"
    )


def _as_array(placed: Placed, arrays: str) -> Any:
    """The matrix as the subject's library has it, its memory the same."""
    if arrays == "torch":
        return placed.view
    if placed.dtype != "bf16":
        return placed.view.numpy()
    import ml_dtypes
    import torch

    return placed.view.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def _named_result(result: Any) -> Product:
    """The result as torch has it, and its dtype as a manifest has it."""
    if not is_torch(result):
        result = _from_numpy(np.asarray(result))
    name = NAMES_OF_TORCH.get(str(result.dtype))
    if name is None:
        known = ", ".join(sorted(NAMES_OF_TORCH.values()))
        raise LaunchError(f"the result must be one of {known}, got {result.dtype}")
    return Product(result, name)


def _from_numpy(array: np.ndarray) -> Any:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def values_of(result: Any, dtype: str) -> np.ndarray:
    """A result in float64."""
    return to_float64(result.detach().cpu(), dtype)
