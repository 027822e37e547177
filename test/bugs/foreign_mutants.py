"""Mutants of kernels of other compilers, judged by the emulator and by ptxas, on many cores.

`python test/bugs/foreign_mutants.py --seconds 150 --processes 14 --out verdicts.jsonl` draws parts
of the kernels of `test/foreign` (`ptx_numbers.PARTS`), most of them of instructions that order
something, until the time is over. Each mutant is a line of JSON: what was changed, what the
emulator said first in the orders of events, and what ptxas says where the emulator refuses the text
or sees nothing. `--show` prints, of such a file, the mutants that nobody sees and those of which
the two judges differ.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fuzz")]

import ptx_numbers  # noqa: E402
from ptx_mutants import emulator_refuses, ptxas_refuses  # noqa: E402

from tilewright.runtime import run_launch_file  # noqa: E402

ORDERS = re.compile(
    r"mbarrier|fence|membar|\bbar\.|barrier|tcgen05|wgmma|cp\.async|cp\.reduce|elect|setmaxnreg"
    r"|ld\.(?:acquire|relaxed|volatile)|st\.(?:release|relaxed|async)|\batom|\bred\.|griddep"
    r"|clusterlaunch|tensormap|mapa|ldmatrix|stmatrix|redux"
)
COMPUTES = ("numbers", "qualifiers", "left-out", "guards", "registers", "labels")
"""Parts of which instructions that order nothing are changed, too."""
RARELY = {"registers": 0.3, "swapped": 0.15, "doubled": 0.3, "exchanged": 0.4, "moved": 0.4}
STRONGER = re.compile(
    r"elect\.sync.*: *elect|: *mov\.|: *bar\.sync\s+\d; *bar\.sync"
    r"|try_wait.*: *(?:@!?%\w+ )?mbarrier\.test_wait|relaxed\.cta.*relaxed\.cluster"
)
"""Changes that cannot weaken anything."""
MOST = 400
LIMIT_S = 20
"""For one order of events of a mutant."""


@cache
def judged(launch: str):
    """The text of a launch file's kernel, and its judge."""
    return ptx_numbers.foreign(Path(launch))


def drawn(launch: str, seed: int, share: float) -> list:
    """Parts and mutants of a kernel, `share` of them of instructions that order something; none of
    an instruction that orders something and that the launch does not execute."""
    ptx, rng = Path(launch).with_suffix(".ptx"), random.Random(f"{seed} {launch}")
    unreached = run_launch_file(ptx, launch).report.unreached or {}
    text = ptx.read_text()
    heaps: dict[tuple[bool, str], list] = {}
    for part, mutants in ptx_numbers.PARTS.items():
        for mutant in mutants(text):
            orders = ORDERS.search(mutant.title) is not None
            told = mutant.line not in unreached and not STRONGER.search(mutant.title)
            if told and (orders or part in COMPUTES):
                heaps.setdefault((orders, part), []).append((part, mutant))
    for heap in heaps.values():
        rng.shuffle(heap)
    chosen = []
    while heaps and len(chosen) < MOST:
        kinds = [kind for kind in heaps if kind[0] == (rng.random() < share)] or [*heaps]
        kind = rng.choices(kinds, [RARELY.get(part, 1) for _, part in kinds])[0]
        chosen.append(heaps[kind].pop())
        if not heaps[kind]:
            del heaps[kind]
    return chosen[::-1]


def verdict(task: tuple[str, tuple[str, str, str], int]) -> dict:
    """What both judges say of a mutant."""
    launch, (part, title, faulty), orders = task
    signal.signal(signal.SIGALRM, _too_long)
    said = {"kernel": Path(launch).stem, "part": part, "title": title}
    refused = emulator_refuses(faulty)
    if refused is not None:
        seen = f"refused: {refused[0]}"
        said["message"] = refused[1][:300]
    else:
        text, judge = judged(launch)
        seen = _first(judge, faulty, orders)
        if seen is None:
            shadow = ptx_numbers.beside(text, faulty)
            same = shadow is not None and _first(judge, shadow, orders) is None
            seen = "same values" if same else "not seen"
    said["seen"] = seen
    if refused is not None or seen in ("not seen", ptx_numbers.WRONG):
        said["ptxas"] = ptxas_refuses(faulty)
    return said


def _first(judge, text: str, orders: int) -> str | None:
    signal.alarm(LIMIT_S * orders)
    try:
        return ptx_numbers.first(judge, text, orders)
    except TimeoutError:
        return "time"
    except Exception as error:
        return f"internal: {error!r}"[:300]
    finally:
        signal.alarm(0)


def _too_long(*_) -> None:
    raise TimeoutError


def judge_share(launches: list[str], options: argparse.Namespace, end: float) -> None:
    """Mutants of these kernels in turn until the time is over, one line of the file for each."""
    queues = [(launch, drawn(launch, options.seed, options.share)) for launch in launches]
    while any(queue for _, queue in queues):
        for launch, queue in queues:
            if time.monotonic() > end:
                return
            if queue:
                part, mutant = queue.pop()
                task = launch, (part, mutant.title, mutant.faulty), options.orders
                with options.out.open("a") as out:
                    print(json.dumps(verdict(task)), file=out)


def main() -> None:
    """Judge until the time is over, or show what a file of verdicts has."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="*", help="parts of names of launch files; all without")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", type=int, default=2, help="orders of events for each")
    parser.add_argument("--share", type=float, default=0.7, help="of instructions that order")
    parser.add_argument("--out", type=Path, default=Path("verdicts.jsonl"))
    parser.add_argument("--show", action="store_true", help="print what --out has")
    options = parser.parse_args()
    if not options.show:
        judge_all(options)
    show(options.out)


def judge_all(options: argparse.Namespace) -> None:
    """Share the kernels among processes, each of which judges mutants of its own."""
    names = options.kernels or [""]
    found = sorted(map(str, ptx_numbers.FOREIGN.glob("*/*.json")))
    launches = [each for each in found if any(name in Path(each).stem for name in names)]
    random.Random(options.seed).shuffle(launches)
    end = time.monotonic() + options.seconds
    work = [
        multiprocessing.Process(
            target=judge_share, args=(launches[at :: options.processes], options, end)
        )
        for at in range(options.processes)
    ]
    for each in work:
        each.start()
    for each in work:
        each.join()


def show(path: Path) -> None:
    """Print what nobody sees, where the judges differ, and how often each verdict came."""
    verdicts = [json.loads(line) for line in path.read_text().splitlines()]
    for each in verdicts:
        unseen = each["seen"] in ("not seen", ptx_numbers.WRONG) or "internal" in each["seen"]
        differ = each["seen"].startswith("refused") and each.get("ptxas") is None
        if unseen or differ:
            line = f"{each['seen']}: {each['kernel']} {each['part']}: {each['title']}"
            print(f"{line}\n    {each.get('message', '')}\n    ptxas: {each.get('ptxas')}")
    print(len(verdicts), Counter(each["seen"] for each in verdicts))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
