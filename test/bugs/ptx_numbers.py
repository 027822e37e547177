"""Each number, or another part, of a kernel's PTX in turn made wrong.

`python test/bugs/ptx_numbers.py "tcgen05 in pairs" --count 500` draws mutants of a kernel of
`ptx_faults`, or of a launch file of `test/foreign`, shows those that the emulator does not see in
several orders of events, and counts the verdicts. A number is made one more, one less, and each of
its bits is flipped. `--parts` names other parts: modifiers of opcodes, guards, registers, whole
instructions that are left out, doubled, moved or exchanged with the next one, and labels of
branches. As many are drawn of each.

`wrong elements` is the verdict of the reference where the emulator says nothing.

Of what is not seen it says which instructions compute the same values as before, as often as they
run: such a mutant is none. What is left over must make no difference: bits that a field ignores,
such as the leading byte offset of a swizzled K-major operand; another number for a barrier that
nobody else uses; what is multiplied by a coordinate that is 0 in this launch.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ptx_faults import numbers, qualifiers, tokens, weakened
from ptx_faults.kernels import DRAWN, KERNELS, compiled, verdict
from ptx_faults.shadows import beside

from tilewright.runtime import run_launch_file
from tilewright.runtime.errors import DeviceError

MAX_STEPS = 400_000
FOREIGN = Path(__file__).parents[1] / "foreign"
Judge = Callable[[str, int], str | None]
PARTS: dict[str, Callable[[str], Iterator]] = {
    "numbers": numbers.mutants,
    "qualifiers": qualifiers.mutants,
    "left-out": tokens.left_out,
    "guards": tokens.guards,
    "registers": tokens.registers,
    "exchanged": tokens.exchanged,
    "doubled": tokens.doubled,
    "moved": tokens.moved,
    "swapped": tokens.swapped,
    "labels": tokens.labels,
    "weakened": weakened.weakened,
}
WRONG = "wrong elements"


def main() -> None:
    """Print what is not seen, and how often each verdict is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = ", ".join((*KERNELS, *DRAWN))
    parser.add_argument("kernel", help=f"a launch file, or one of {known}")
    parser.add_argument("--parts", default="numbers", help=f"what is changed: {', '.join(PARTS)}")
    parser.add_argument("--count", type=int, help="so many of each part, drawn; all without it")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--orders", type=int, default=2, help="orders of events for each")
    options = parser.parse_args()
    text, judge = subject(options.kernel)
    counts = Counter[str]()
    for part in options.parts.split(","):
        counts += tried(part, text, judge, options)
    seen = {name: count for name, count in counts.items() if name != WRONG}
    print(f"{counts.total()} mutants, {counts[WRONG]} wrong without a word, {seen}")


def tried(part: str, text: str, judge: Judge, options: argparse.Namespace) -> Counter[str]:
    """Verdicts of the mutants of one part, of which those are shown that nobody sees."""
    chosen = list(PARTS[part](text))
    random.Random(options.seed).shuffle(chosen)
    counts = Counter[str]()
    for mutant in chosen[: options.count]:
        seen = first(judge, mutant.faulty, options.orders)
        if seen is None:
            shadow = beside(text, mutant.faulty)
            same = shadow is not None and first(judge, shadow, options.orders) is None
            seen = "same values" if same else "not seen"
        if seen in ("not seen", WRONG):
            print(f"{part}, {seen}: {mutant.title}", flush=True)
        counts[seen] += 1
    return counts


def first(judge: Judge, text: str, orders: int) -> str | None:
    """The first verdict of some orders of events, None if nothing is seen."""
    return next(filter(None, (judge(text, seed) for seed in range(orders))), None)


def subject(name: str) -> tuple[str, Judge]:
    """A kernel's PTX, and what is wrong with a text in its place in an order of events."""
    if name in KERNELS or name in DRAWN:
        return compiled(name).ptx, lambda text, seed: verdict(name, text, seed, MAX_STEPS)
    return foreign(Path(name).resolve())


def foreign(launch: Path) -> tuple[str, Judge]:
    """That of a launch file, whose outputs have references."""
    sys.path.insert(0, str(FOREIGN))
    from test_foreign_kernels import compare

    def judge(text: str, seed: int) -> str | None:
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as ptx:
            ptx.write(text)
            ptx.flush()
            try:
                result = run_launch_file(ptx.name, said, seed, max_steps=MAX_STEPS)
                if Counter(each.category for each in result.report.warnings) - told:
                    return "a warning"
                compare(launch, result.outputs)
            except DeviceError as error:
                return getattr(error, "category", "refused")
            except AssertionError:
                return WRONG
        return None

    ptx = launch.with_suffix(".ptx")
    said = _with_whole_tensors(ptx, launch)
    told = Counter(each.category for each in run_launch_file(ptx, said).report.warnings)
    return ptx.read_text(), judge


def _with_whole_tensors(ptx: Path, launch: Path) -> dict[str, Any]:
    """The launch, which says of each tensor that the kernel writes, or reads, all of it if it
    does: then its mutants must, too."""
    said = json.loads(launch.read_text())
    for tensor in said["tensors"]:
        tensor["whole"] = True
        try:
            warnings = run_launch_file(ptx, said).report.warnings
            tensor["whole"] = all(each.category != "unread-input" for each in warnings)
        except DeviceError:
            tensor["whole"] = False
    return said


if __name__ == "__main__":
    main()
