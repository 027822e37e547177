"""Compiles what Inductor will measure, without measuring: so that measuring need not wait for it.

Inductor compiles about 20 candidates of a product, for a second or two each, and then measures them
one after the other. Here it stops in between. What was compiled lies in the caches that
`TRITON_CACHE_DIR` and `TORCHINDUCTOR_CACHE_DIR` name, where a later run with the same finds it;
nothing is chosen, and no time is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Compiled(BaseException):
    """All candidates are compiled. Inductor and dynamo let it through, as no `Exception`."""


def stop_before_measuring() -> None:
    """Let this process's Inductor raise `Compiled` where it would measure candidates."""
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    def stop(*given: Any, **named: Any) -> Any:
        raise Compiled

    AlgorithmSelectorCache.benchmark_in_current_process = classmethod(stop)  # type: ignore[method-assign]


def compiled_ahead(compile_and_run: Callable[[], Any]) -> bool:
    """Whether Inductor came to candidates that it would measure; they are compiled then."""
    try:
        compile_and_run()
    except Compiled:
        return True
    return False
