"""Side effects of a module, which a kernel of its result would not have.

self.calls += 1                 a Python attribute that is another one after the call
self.last = linear(x)           a buffer or parameter that is assigned
self.count.add_(1)              a tensor that is changed in place, be it an input
return {"y": linear(x)}         a result that is no tensor and no tuple of several
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...dialects.errors import CompileError

if TYPE_CHECKING:
    import torch


class Effects:
    """What was seen of the calls of a module while it was exported."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._kept: str | None = None
        self._changed: str | None = None
        self._result: Any = None

    @contextmanager
    def watching(
        self, tensors: Mapping[str, torch.Tensor], state: dict[str, Any]
    ) -> Iterator[None]:
        """Around a call with tensors by their names; torch puts into `state` what is assigned."""
        attributes, versions = self._attributes(), _versions(tensors)
        yield
        after = self._attributes()
        kept = [name for name in after if after[name] is not attributes.get(name, after)]
        kept += [name for name in state if state[name] is not tensors[name]]
        self._kept = self._kept or next(iter(kept), None)
        changed = [name for name, now in _versions(tensors).items() if now != versions[name]]
        self._changed = self._changed or next(iter(changed), None)

    def returned(self, result: Any) -> Any:
        """What the call returns, which is remembered."""
        self._result = result
        return result

    def check(self, result_as_it_is: bool) -> None:
        """Refuse what a kernel leaves undone; of results only if they must be given as they are."""
        if self._kept is not None:
            rule = "must keep nothing between calls, got a new value of"
            raise CompileError(f"{rule} {self._kept!r}; return it, or keep it outside")
        if self._changed is not None:
            rule = "must change no tensor in place, got a new value of"
            raise CompileError(f"{rule} {self._changed!r}; compute another tensor")
        if result_as_it_is and (got := _other_result(self._result)):
            rule = "must return a tensor, or several in a tuple"
            raise CompileError(f"{rule}, got {got}; return them so")

    def _attributes(self) -> dict[str, Any]:
        """All attributes that are no tables of parameters, buffers and modules, by dotted names."""
        return {
            f"{path}.{name}" if path else name: value
            for path, each in self._module.named_modules()
            for name, value in vars(each).items()
        }


def _versions(tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    return {name: value._version for name, value in tensors.items()}


def _other_result(result: Any) -> str | None:
    """What a result is that is no tensor and no tuple of several, None of one that is."""
    import torch

    if isinstance(result, torch.Tensor):
        return None
    if type(result) is not tuple:
        return f"a {type(result).__name__}"
    inner = next((each for each in result if isinstance(each, (tuple, list, dict))), None)
    if inner is not None:
        return f"a tuple with a {type(inner).__name__} in it"
    return None if len(result) > 1 else f"a tuple of {len(result)}"
