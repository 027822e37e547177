"""Planted faults in regions of torch's graphs."""

from __future__ import annotations

from fault import Fault

REGIONS = "test/inductor/test_regions.py"
RACES = "test/inductor/test_races.py"
NUMBERS = "test/inductor/test_region_numerics.py"

GRAPHS = [
    Fault(
        "grow: what depends on an operator outside through another one counts as independent",
        "                self._known[each] = any(self._known[e] for e in reads)",
        "                self._known[each] = False",
        (REGIONS,),
    ),
    Fault(
        "grow: regions that reach further than this one do not lead back",
        "        if begin <= last < end:",
        "        if begin <= last < begin:",
        (REGIONS,),
    ),
    Fault(
        "race: a region that is as fast as its products alone is not raced against the rest",
        "        if not fused or ours <= theirs * enough:",
        "        if not fused or ours <= theirs * 2:",
        (RACES,),
    ),
    Fault(
        "source: a bool counts as the number that it is read as",
        "value != 0 if is_truth(node) else value for node, value in given}",
        "value == 0 if is_truth(node) else value for node, value in given}",
        (NUMBERS,),
    ),
    Fault(
        "backend: threads that torch starts have no provider",
        "        entry.default = found",
        "        entry.default = None",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "joins: what lies between two products may be read elsewhere",
        "        read_here = all(source_of(each, joined) is second.node for each in leaving)",
        "        read_here = all(source_of(each, joined) is not None for each in leaving)",
        (REGIONS,),
    ),
    Fault(
        "frames: what refuses a view among fake tensors ends the search",
        "    except (RuntimeError, ValueError):",
        "    except RuntimeError:",
        (REGIONS,),
    ),
    Fault(
        "matmul: a call like the last one goes to the kernel, whatever is differentiated",
        "or differentiates(a.requires_grad or b.requires_grad or out.requires_grad):",
        ":",
        ("test/compiler/test_calls_like_the_last.py",),
    ),
]
