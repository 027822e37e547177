"""Each number, or qualifier, of a kernel's PTX in turn made wrong.

`python test/bugs/ptx_numbers.py "tcgen05 in pairs" --count 500` draws mutants of a kernel of
`ptx_faults`, or of a launch file of `test/foreign`, shows those that the emulator does not see in
several orders of events, and counts the verdicts. A number is made one more, one less, and each of
its bits is flipped; with `--qualifiers` a modifier of an opcode is replaced.

Of what is not seen it says which instructions compute the same values as before, as often as they
run: such a mutant is none. What is left over must make no difference: bits that a field ignores,
such as the leading byte offset of a swizzled K-major operand; another number for a barrier that
nobody else uses; what is multiplied by a coordinate that is 0 in this launch.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ptx_faults import numbers, qualifiers
from ptx_faults.kernels import KERNELS, compiled, verdict
from ptx_faults.shadows import beside

from tilewright.runtime.errors import DeviceError

MAX_STEPS = 400_000
FOREIGN = Path(__file__).parents[1] / "foreign"
Judge = Callable[[str, int], str | None]


def main() -> None:
    """Print what is not seen, and how often each verdict is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernel", help=f"a launch file, or one of {', '.join(KERNELS)}")
    parser.add_argument("--qualifiers", action="store_true", help="change opcodes, not numbers")
    parser.add_argument("--count", type=int, help="so many, drawn at random; all without it")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--orders", type=int, default=2, help="orders of events for each")
    options = parser.parse_args()
    text, judge = subject(options.kernel)
    chosen = list((qualifiers if options.qualifiers else numbers).mutants(text))
    random.Random(options.seed).shuffle(chosen)
    counts = Counter[str]()
    for mutant in chosen[: options.count]:
        seen = first(judge, mutant.faulty, options.orders)
        if seen is None:
            shadow = beside(text, mutant.faulty)
            same = shadow is not None and first(judge, shadow, options.orders) is None
            seen = "same values" if same else "not seen"
            if not same:
                print(mutant.title, flush=True)
        counts[seen] += 1
    print(f"{counts.total()} mutants: {dict(counts.most_common())}")


def first(judge: Judge, text: str, orders: int) -> str | None:
    """The first verdict of some orders of events, None if nothing is seen."""
    return next(filter(None, (judge(text, seed) for seed in range(orders))), None)


def subject(name: str) -> tuple[str, Judge]:
    """A kernel's PTX, and what is wrong with a text in its place in an order of events."""
    if name in KERNELS:
        return compiled(name).ptx, lambda text, seed: verdict(name, text, seed, MAX_STEPS)
    return foreign(Path(name).resolve())


def foreign(launch: Path) -> tuple[str, Judge]:
    """That of a launch file, whose outputs have references."""
    sys.path.insert(0, str(FOREIGN))
    from test_foreign_kernels import wrong_output

    def judge(text: str, seed: int) -> str | None:
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as ptx:
            ptx.write(text)
            ptx.flush()
            try:
                return "wrong elements" if wrong_output(launch, Path(ptx.name), seed) else None
            except DeviceError as error:
                return getattr(error, "category", "refused")

    return launch.with_suffix(".ptx").read_text(), judge


if __name__ == "__main__":
    main()
