"""Whether torch must see a call as one operator, because it is tracing."""

from __future__ import annotations

import sys
from typing import Any

_TORCH = sys.modules.get("torch")
"""torch, if it was there first."""


def is_traced() -> bool:
    """Whether torch.compile reads this very code, for which it answers True; never at run time."""
    # Dynamo of torch 2.11 fails at sys.modules where reading a module imports another.
    torch = _TORCH if _TORCH is not None else sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def is_watched(*values: Any) -> bool:
    """Whether tensors have no memory of their own, or a dispatch mode wants to see what happens.

    Fake and functional tensors, those on meta or of torch.func's transforms, and anything under,
    say, a FakeTensorMode or a FlopCounterMode.
    """
    torch = sys.modules.get("torch")
    tensors = [value for value in values if torch and isinstance(value, torch.Tensor)]
    if torch is None or not tensors:
        return False
    # Not is_in_torch_dispatch_mode(), which stays True while a mode's operators run.
    modes = torch._C._len_torch_dispatch_stack()
    on_meta = all(each.is_meta for each in tensors)
    return modes > 0 or on_meta or any(_stands_for_another(each) for each in tensors)


def _stands_for_another(tensor: Any) -> bool:
    torch = sys.modules["torch"]
    dispatches = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    wrapped = torch._C._functorch
    return (
        dispatches
        or wrapped.is_functorch_wrapped_tensor(tensor)
        or wrapped.is_legacy_batchedtensor(tensor)  # of batched gradients
    )


def records_gradients(*values: Any) -> bool:
    """Whether torch records what is done with these, as one of them requires a gradient."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any(getattr(value, "requires_grad", False) for value in values)


def is_transformed() -> bool:
    """Whether torch.func transforms what runs now, or derivatives are taken forward."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    forward = torch.autograd.forward_ad._current_level >= 0
    return forward or torch._C._are_functorch_transforms_active()


def are_transformed(*values: Any) -> bool:
    """Whether torch.func transforms any of these tensors, or any has a tangent."""
    return is_transformed() and any(map(_is_transformed, values))


def _is_transformed(value: Any) -> bool:
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return False
    wrapped, forward = torch._C._functorch, torch.autograd.forward_ad
    if wrapped.is_gradtrackingtensor(value) or wrapped.is_batchedtensor(value):
        return True
    if forward._current_level < 0:
        return False
    # In an operator torch would not look: it has left the keys of derivatives behind.
    guard, keys = torch._C._SetExcludeDispatchKeyGuard, torch._C.DispatchKey
    with guard(keys.AutogradFunctionality, False), guard(keys.ADInplaceOrView, False):
        return forward.unpack_dual(value).tangent is not None
