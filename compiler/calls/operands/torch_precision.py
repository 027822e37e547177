"""torch's own setting for f32 matmuls."""

from __future__ import annotations

from typing import Any

EXACT = ("ieee", "none")
"""`torch.backends.cuda.matmul.fp32_precision` where no digits may be left out; "none" is unset."""


def asks_for_all_digits(torch: Any) -> bool:
    """Whether torch's products of f32 on a GPU may not be of tf32, as by default.

    torch: the module, or None where nobody imported it, so that nobody set it otherwise.
    torch has two settings. That of the backend says what holds, also where the older one was set;
    the older one raises where the other was.
    """
    if torch is None:
        return True
    said = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    if said is None:
        return torch.get_float32_matmul_precision() == "highest"
    return said in EXACT
