"""What was done with the products of the graphs that this process compiled or took from torch's
cache, and why.

`tilewright.torch.report()` gives it as a whole, the logger `tilewright.inductor` line by line.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

LOGGER = logging.getLogger("tilewright.inductor")
CACHES = ("inductor", "fxgraph_cache_hit"), ("aot_autograd", "autograd_cache_hit")
"""Where torch counts the graphs that it took from its caches; of the second each has both."""


@dataclass
class Row:
    """One product of a graph.

    taken: whether a kernel of ours computes it. fused: operators that are part of the kernel.
    reason: why it was taken or left. stop: the first operator after it that is not part of it.
    Times are microseconds: those of the estimate, which is made when it is asked for, and of the
    race where there was one. at_least: whether Inductor's are those of its products without what
    follows. cached: whether another process looked at the graph, and torch kept it.
    """

    name: str
    product: str
    sizes: tuple[int | str, ...]
    dtype: str
    fused: list[str] = field(default_factory=list)
    taken: bool = False
    reason: str = ""
    stop: str = ""
    pipeline: str = ""
    estimate: Callable[[], float | None] = lambda: None
    ours_us: float | None = None
    inductor_us: float | None = None
    at_least: bool = False
    count: int = 1
    cached: bool = False

    @property
    def estimate_us(self) -> float | None:
        return self.estimate()

    def __str__(self) -> str:
        times = ", ".join(self._times())
        return self.text(f" [{times}]" if times else "")

    def text(self, times: str = "") -> str:
        """The line with these times."""
        verdict = "taken" if self.taken else "left"
        sizes = "x".join(str(each) for each in self.sizes)
        fused = f" + {', '.join(self.fused)}" if self.fused else ""
        stop = f"; ends at {self.stop}" if self.stop else ""
        kept = "; of a graph from torch's cache" if self.cached else ""
        what = f"{self.product} {sizes} {self.dtype}{fused}"
        return f"{verdict} {what}: {self.reason}{times}{stop}{kept}"

    def _times(self) -> Iterator[str]:
        theirs = "Inductor more than" if self.at_least else "Inductor"
        named = {"ours": self.ours_us, theirs: self.inductor_us, "estimate": self.estimate_us}
        for name, found in named.items():
            if found is not None:
                yield f"{name} {found:.1f} us"


class Report:
    """The products of all graphs, in the order in which they were looked at.

    seconds: what the search for regions, their kernels, Inductor's kernels to race against and the
    races themselves took. graphs: marks of those whose rows were entered and went with the graph.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.seconds: dict[str, float] = {}
        self.graphs: set[str] = set()

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Add the time of a block to `seconds`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - start
            self.seconds[what] = self.seconds.get(what, 0.0) + passed

    def add(self, row: Row) -> None:
        """Enter a product, and log it."""
        self.rows.append(row)
        LOGGER.info("%s", row)

    def __str__(self) -> str:
        """A line for each kind of product, with how often it occurs; at the end how many graphs
        torch took from its cache."""
        counts: dict[str, int] = {}
        for row in self.rows:
            counts[str(row)] = counts.get(str(row), 0) + row.count
        taken = sum(row.count for row in self.rows if row.taken)
        head = f"{taken} of {sum(counts.values())} products taken"
        spent = ", ".join(f"{name} {each:.1f} s" for name, each in self.seconds.items())
        head += f" ({spent})" if spent else ""
        lines = [f"{count:4} x {line}" for line, count in counts.items()]
        return "\n".join([head, *lines, *_of_torchs_cache()])


def _of_torchs_cache() -> Iterator[str]:
    """What is not in the rows, since nobody looked at the products of such a graph."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", {})
    graphs = max((counters.get(of, {}).get(name, 0) for of, name in CACHES), default=0)
    if graphs:
        rows = "rows come with those that call a kernel, at its first call"
        cure = "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 looks at all of them anew"
        yield f"torch took {graphs} graph{'s' * (graphs > 1)} from its cache: {rows}; {cure}"


REPORT = Report()


def report() -> Report:
    """What was taken and left in this process so far."""
    return REPORT


def reset() -> None:
    """Forget all that was entered."""
    REPORT.rows.clear()
    REPORT.seconds.clear()
    REPORT.graphs.clear()
