"""Several processes that measure models on one GPU: what they take from one list, and what torch
tunes alike in two of them."""

from __future__ import annotations

import copy
import fcntl
import hashlib
import json
import math
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NONE_LEFT = ""


def share(
    work: Callable[..., None], given: list[tuple[Any, ...]], names: list[str], seconds: float
) -> bool:
    """Call work(left, *arguments) in a process for each of `given`, where iter_left(left) gives a
    name to one of them; what runs after so many seconds is ended. Gives whether anything was."""
    context = multiprocessing.get_context("spawn")
    left = context.SimpleQueue()
    for name in [*names, *(NONE_LEFT for _ in given)]:
        left.put(name)
    workers = [context.Process(target=work, args=(left, *each)) for each in given]
    until = time.monotonic() + seconds
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(None if math.isinf(until) else max(0.0, until - time.monotonic()))
    late = [worker for worker in workers if worker.is_alive()]
    for worker in late:
        worker.kill()
        worker.join()
    return bool(late)


def iter_left(left: Any) -> Iterator[str]:
    """Names that no other process has."""
    while name := left.get():
        yield name


def share_tuning(folder: str | Path) -> None:
    """Let Inductor take what another process with the same folders tuned.

    Of kernels that it tunes by coordinate descent it knows by itself only those of the same name,
    and names have the number that a kernel has in its model. Products that another process measured
    at the same time it overwrites in its file.
    """
    from torch._inductor import codecache
    from torch._inductor.runtime import triton_heuristics

    Path(folder).mkdir(parents=True, exist_ok=True)
    tuner, products = triton_heuristics.CachingAutotuner, codecache.CacheBase
    descend, update = tuner.coordinate_descent_tuning, products.update_local_cache

    def descended(self: Any, launcher: Any, *given: Any, **named: Any) -> Any:
        if self.filename is None:  # never in a file, as candidates for products
            return descend(self, launcher, *given, **named)
        path = Path(folder) / f"{_key(self, launcher)}.json"
        if path.exists():
            return _made(self, launcher, json.loads(path.read_text()))
        best = descend(self, launcher, *given, **named)
        _write(path, best.config)
        return best

    def updated(self: Any, found: dict[str, Any]) -> None:
        with open(Path(folder) / "products", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            update(self, merged(self.get_local_cache(), found))

    tuner.coordinate_descent_tuning = descended
    products.update_local_cache = updated


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both of two trees; of what both have, the second's."""
    made = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            made[key] = merged(first[key], second[key])
    return made


def _write(path: Path, config: Any) -> None:
    found = {"kwargs": dict(config.kwargs), "warps": config.num_warps, "stages": config.num_stages}
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(found))
    os.replace(beside, path)


def _key(tuner: Any, launcher: Any) -> str:
    """Of a kernel's source, whatever its number is."""
    text = re.sub(r"\b(triton_\w*)_\d+\b", r"\1", Path(tuner.filename).read_text())
    text += str(launcher.config.kwargs.keys())
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _made(tuner: Any, launcher: Any, found: dict[str, Any]) -> Any:
    """The kernel by the choice of another process."""
    config = copy.deepcopy(launcher.config)
    config.kwargs.update(found["kwargs"])
    config.num_warps, config.num_stages = found["warps"], found["stages"]
    config.found_by_coordesc = True
    if getattr(tuner.fn, "fn", None) is None and getattr(tuner, "_reload_kernel", None):
        tuner.fn = tuner._reload_kernel().fn
    with tuner.lock:
        return tuner._precompile_config(config).make_launcher()
