"""Each number of a kernel's PTX in turn made wrong: one more, one less, each of its bits flipped.

`python test/bugs/ptx_numbers.py "tcgen05 in pairs" --count 500` draws mutants of a kernel of
`ptx_faults`, shows those that the emulator does not see in several orders of events, and counts the
verdicts. What is left over must make no difference: bits that a field ignores, such as the leading
byte offset of a swizzled K-major operand; another number for a barrier that nobody else uses; what
is masked away, or multiplied by a coordinate that is 0 in this launch.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from ptx_faults.kernels import KERNELS, compiled, verdict
from ptx_faults.numbers import mutants

MAX_STEPS = 400_000


def main() -> None:
    """Print what is not seen, and how often each verdict is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernel", choices=KERNELS)
    parser.add_argument("--count", type=int, help="so many, drawn at random; all without it")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--orders", type=int, default=2, help="orders of events for each")
    options = parser.parse_args()
    chosen = list(mutants(compiled(options.kernel).ptx))
    random.Random(options.seed).shuffle(chosen)
    counts = Counter[str]()
    for mutant in chosen[: options.count]:
        found = (verdict(options.kernel, mutant.faulty, seed, MAX_STEPS)
                 for seed in range(options.orders))  # fmt: skip
        seen = next((each for each in found if each), None)
        counts[seen or "not seen"] += 1
        if seen is None:
            print(mutant.title, flush=True)
    print(f"{counts.total()} mutants: {dict(counts.most_common())}")


if __name__ == "__main__":
    main()
