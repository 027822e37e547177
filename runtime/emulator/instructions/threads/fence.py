"""membar and fence (PTX ISA §9.7.13.4).

Memory is sequentially consistent here: the fences have no effect on values. They matter to the
checks: a proxy fence makes generic writes visible to the async proxy, the others order accesses.
"""

from __future__ import annotations

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction

_SECTION = "9.7.13.4"
_SCOPES = ("cta", "cluster", "gpu", "sys")
_RESTRICTED = {"acquire": "sync_restrict::shared::cluster", "release": "sync_restrict::shared::cta"}


def _no_effect(warp, mask) -> None:
    return None


@instruction("membar", section=_SECTION)
def build_membar(ins: Decoded) -> Step:
    """membar.{cta,gl,sys}."""
    scope = ins.required(("cta", "gl", "sys"))
    ins.finish_modifiers()
    return _ordering("sc", "gpu" if scope == "gl" else scope)


@instruction("fence", section=_SECTION)
def build_fence(ins: Decoded) -> Step:
    """fence{.sc,.acq_rel,.acquire,.release}.scope and the .sync_restrict forms."""
    order = ins.choice(("sc", "acq_rel", "acquire", "release"), "acq_rel")
    restricted = ins.choice(tuple(_RESTRICTED.values()))
    scope = ins.required(_SCOPES)
    ins.finish_modifiers()
    if restricted:
        _check_restriction(ins, order, restricted, scope)
    return _ordering(order, scope)


def _check_restriction(ins: Decoded, order: str, restricted: str, scope: str) -> None:
    """fence{.proxy.async::generic}.acquire.sync_restrict::shared::cluster.cluster, and with
    .release and ::shared::cta."""
    if restricted != _RESTRICTED.get(order) or scope != "cluster":
        legal = " or ".join(f".{name}.{space}.cluster" for name, space in _RESTRICTED.items())
        raise ins.trap("operand", f"a fence with .sync_restrict is {legal}")


def _ordering(order: str, scope: str) -> Step:
    def step(warp, mask) -> None:
        events = warp.launch.events
        if order != "acquire":
            events.released(warp)
        if order != "release":
            events.acquired(warp)
        events.fenced(warp, order, scope)

    return step


@instruction("fence.mbarrier_init", section=_SECTION)
def build_fence_mbarrier_init(ins: Decoded) -> Step:
    """fence.mbarrier_init.release.cluster."""
    ins.required(("release",))
    ins.required(("cluster",))
    ins.finish_modifiers()
    return _publish_barriers


def _publish_barriers(warp, mask) -> None:
    warp.launch.events.mbarrier_init_fenced(warp)


@instruction("fence.proxy.alias", "membar.proxy.alias", section=_SECTION)
def build_fence_alias(ins: Decoded) -> Step:
    """fence.proxy.alias."""
    ins.finish_modifiers()
    return _no_effect


@instruction("membar.proxy.async", section=_SECTION)
def build_membar_async(ins: Decoded) -> Step:
    """membar.proxy.async."""
    ins.finish_modifiers()
    return _publishing(None)


@instruction("fence.proxy.async", section=_SECTION)
def build_fence_async(ins: Decoded) -> Step:
    """fence.proxy.async{.global,.shared::cta,.shared::cluster}."""
    space = ins.choice(("global", "shared::cta", "shared::cluster"))
    ins.finish_modifiers()
    return _publishing(space)


@instruction("fence.proxy.async::generic", section=_SECTION)
def build_fence_async_generic(ins: Decoded) -> Step:
    """fence.proxy.async::generic.{acquire,release}.sync_restrict::….cluster."""
    order = ins.required(("acquire", "release"))
    restricted = ins.required(tuple(_RESTRICTED.values()))
    scope = ins.required(_SCOPES)
    ins.finish_modifiers()
    _check_restriction(ins, order, restricted, scope)
    return _publishing("shared::cta") if order == "release" else _no_effect


def _publishing(space: str | None) -> Step:
    """Writes become visible to the async proxy, in one state space or in all of them."""

    def step(warp, mask) -> None:
        warp.launch.events.proxy_fenced(warp, mask, space)

    return step
