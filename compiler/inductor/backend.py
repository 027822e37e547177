"""`torch.compile(model, backend="tilewright")`, and the provider for torch.compile as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import torch
from torch import fx

from ...dialects.errors import OptionError
from .graph_pass import RegionPass
from .joint_pass import JointPass
from .settings import NAMES, split_options

HOOK = "post_grad_custom_post_pass"
JOINT_HOOK = "joint_custom_post_pass"
TORCHS = "2.9 to 2.13"


def tilewright(
    module: fx.GraphModule,
    inputs: list[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Callable[..., Any]:
    """Inductor with the provider: what torch.compile calls for `backend="tilewright"`.

    mode: as of Inductor, "max-autotune" too. options: those of `Settings`; what else is there goes
        to Inductor.
    """
    from torch._inductor import list_mode_options
    from torch._inductor.compile_fx import compile_fx

    settings, rest = split_options(options)
    patches = {**(list_mode_options(mode) if mode else {}), **rest}
    patches[HOOK] = RegionPass(settings, patches.get(HOOK, hook()))
    patches[JOINT_HOOK] = JointPass(patches.get(JOINT_HOOK, hook(JOINT_HOOK)))
    return compile_fx(module, inputs, config_patches=patches, **others)


def enable(**options: Any) -> None:
    """Let every torch.compile of this process with Inductor use the provider; see `Settings`.

    Raises OptionError for a torch that lacks the hook.
    """
    settings, unknown = split_options(options)
    if unknown:
        rule = f"options must be of {', '.join(NAMES)}"
        raise OptionError(f"torch: {rule}, got {sorted(unknown)[0]}; set it in torch.compile")
    region, joint = _before(HOOK), _before(JOINT_HOOK)
    _set_hook(HOOK, RegionPass(settings, region))
    _set_hook(JOINT_HOOK, JointPass(joint))


def disable() -> None:
    """Take the provider out of torch.compile again."""
    for name in (HOOK, JOINT_HOOK):
        _set_hook(name, _before(name))


def _before(name: str) -> Any:
    """What Inductor calls at one of its places beside the provider."""
    found = hook(name)
    return found.before if isinstance(found, RegionPass | JointPass) else found


def hook(name: str = "") -> Any:
    """What Inductor calls on its graphs now; OptionError where this torch has no such place."""
    from torch._inductor import config

    name = name or HOOK
    if not hasattr(config, name):
        rule = f"torch must be {TORCHS}, whose Inductor has {name}"
        raise OptionError(f"torch: {rule}, got {torch.__version__}; install one of them")
    return getattr(config, name)


def _set_hook(name: str, found: Any) -> None:
    """Let Inductor call a pass in every thread.

    Settings are a thread's own since torch 2.13, and torch compiles backward in a thread that it
    starts for the GPU. Such a thread has the default.
    """
    from torch._inductor import config

    setattr(config, name, found)
    entry = getattr(config, "_config", {}).get(name)
    if entry is not None and isinstance(entry.user_override, ContextVar):
        entry.default = found
