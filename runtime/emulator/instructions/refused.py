"""Families that no matmul kernel needs: known by name, and refused with the reason."""

from __future__ import annotations

from ..ptx.decode import Decoded
from ..ptx.registry import Step, instruction

_SCALAR_VIDEO = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
_PACKED_VIDEO = tuple(
    f"{name}{parts}"
    for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
    for parts in (2, 4)
)


@instruction("multimem.ld_reduce", "multimem.st", "multimem.red", section="9.7.9.14")
def build_multimem(ins: Decoded) -> Step:
    """A multimem address reaches the memories of several devices, and there is one here."""
    return ins.unmodelled("a multicast address: it needs several devices, a launch has one")


@instruction(*_SCALAR_VIDEO, *_PACKED_VIDEO, section="9.7.18")
def build_video(ins: Decoded) -> Step:
    """Sub-word arithmetic of the video instructions."""
    return ins.unmodelled("a video instruction")


@instruction("alloca", "stacksave", "stackrestore", section="9.7.17")
def build_stack(ins: Decoded) -> Step:
    """The size of a thread's local memory is fixed when its kernel is decoded."""
    return ins.unmodelled("a change of the stack's size; declare .local variables")


@instruction("tex", "tld4", "txq", "istypep", section="9.7.10")
def build_texture(ins: Decoded) -> Step:
    """Textures need a texture object, which a launch cannot pass."""
    return ins.unmodelled("a texture instruction")


@instruction("suld", "sust", "sured", "suq", section="9.7.11")
def build_surface(ins: Decoded) -> Step:
    """Surfaces need a surface object, which a launch cannot pass."""
    return ins.unmodelled("a surface instruction")
