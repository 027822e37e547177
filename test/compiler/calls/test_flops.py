"""What torch counts of our operators."""

import subprocess
import sys

import torch
from torch import library
from torch.utils.flop_counter import FlopCounterMode

from tilewright.compiler.calls.operators.flops import count_flops

FIRST = """
import torch, tilewright
from torch.utils.flop_counter import FlopCounterMode
a, b = torch.ones(16, 32).bfloat16(), torch.ones(48, 32).bfloat16()
counted = []
for _ in range(2):
    with FlopCounterMode(display=False) as counter:
        tilewright.matmul(a, b)
    counted.append(counter.get_total_flops())
print(*counted)
"""


def test_the_first_call_of_a_process_is_counted_as_the_next():
    command = [sys.executable, "-W", "ignore", "-P", "-c", FIRST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(2 * 16 * 48 * 32)] * 2


def test_counters_around_the_first_use_of_an_operator_know_it():
    ours = library.Library("tilewright_test", "DEF")
    with FlopCounterMode(display=False) as outer, FlopCounterMode(display=False) as inner:
        ours.define("twice(Tensor x) -> Tensor")
        ours.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        operator = torch.ops.tilewright_test.twice.default
        count_flops(operator, lambda x, out_val: 7 * out_val.numel())
        operator(torch.ones(3))
    assert (inner.get_total_flops(), outer.get_total_flops()) == (21, 21)
