"""Damage launch files, and the PTX that they run, and hold the emulator to one of two answers.

    python test/fuzz/fuzz_launches.py --count 500 --seed 0 [--ptx]

A launch of test/foreign or test/emulate/examples with values of its file changed, or with
instructions of its PTX left out, doubled, moved or changed (`--ptx`), ends well or with a
DeviceError of one line. Whatever else happens is printed with its seed; exit status 1.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_bundles import MOST_SECONDS, Outcome, change_values

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "bugs"))
from ptx_faults import numbers, qualifiers, tokens  # noqa: E402

MOST_BYTES = 60_000
"""Of the PTX of launches that are damaged."""
MOST_STEPS = 30_000
NAMES = ("shape", "role", "x", "whole", "")
PARTS = (
    *(tokens.left_out, tokens.doubled, tokens.moved, tokens.swapped, tokens.labels),
    *(tokens.guards, tokens.registers, tokens.exchanged, numbers.mutants, qualifiers.mutants),
)


@cache
def launches() -> list[Path]:
    """Launch files whose PTX stands beside them and is short, and whose contents are drawn."""
    found = [*TESTS.glob("foreign/*/*.json"), *TESTS.glob("emulate/examples/*.json")]
    small = [each for each in sorted(found) if each.with_suffix(".ptx").exists()]
    sizes = [each.with_suffix(".ptx").stat().st_size for each in small]
    texts = [each.read_text() for each in small]
    kept = zip(small, sizes, texts, strict=True)
    return [each for each, size, text in kept if size <= MOST_BYTES and ".npy" not in text]


def judge(seed: int, damages_ptx: bool = False) -> Outcome:
    """Damage a launch as the seed says and run it."""
    draw = random.Random(seed)
    path = draw.choice(launches())
    said, ptx = json.loads(path.read_text()), path.with_suffix(".ptx").read_text()
    if damages_ptx:
        ptx = _damaged(ptx, draw)
    else:
        change_values(said, draw, (0.15, 0.35, 0.6), 0.7, NAMES, factors=(1, -1))
    started = time.perf_counter()
    outcome = _run(seed, ptx, said)
    if (seconds := time.perf_counter() - started) > MOST_SECONDS:
        return Outcome(seed, "slow", f"{path.name}: {seconds:.1f} s")
    return Outcome(seed, outcome.kind, f"{path.name}: {outcome.detail}")


def _damaged(ptx: str, draw: random.Random) -> str:
    for _ in range(draw.choice((1, 1, 2, 4))):
        ptx = draw.choice(list(draw.choice(PARTS)(ptx)) or list(tokens.left_out(ptx))).faulty
    return ptx


def _run(seed: int, ptx: str, said: Any) -> Outcome:
    from tilewright.runtime import run_launch_file
    from tilewright.runtime.errors import DeviceError

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        try:
            run_launch_file(path, said, seed, max_steps=MOST_STEPS)
        except DeviceError as error:
            words = str(error)
            return Outcome(seed, "refused" if words.strip() else "no word", words[:200])
        except Exception as error:
            return Outcome(seed, "internal error", f"{type(error).__name__}: {error}")
    return Outcome(seed, "another")


def main() -> int:
    """Judge the launches of `--count` seeds from `--seed` on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ptx", action="store_true", help="damage the PTX, not the launch file")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        outcome = judge(seed, options.ptx)
        counts[outcome.kind] += 1
        if outcome.is_fault:
            print(f"seed {seed}: {outcome.kind}: {outcome.detail[:600]}", flush=True)
    print(f"{options.count} launches from seed {options.seed} on: {dict(counts)}")
    return int(any(Outcome(0, kind).is_fault for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
