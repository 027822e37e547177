"""What a product costs at the limit of power: forms of its kernel under lasting load.

    python benchmarks/power_limit.py compile FOLDER [--target sm_90a] [--shapes 8192x8192x2048,…]
                                                    [--epilogue residual] [--forms operands_l2,…]
                                                    [--orders grouped:16,hilbert]
    python benchmarks/power_limit.py run FOLDER [--epilogue residual] [--rounds 4] [--json PATH]
                                                [--rests 5] [--cublaslt 8]

`compile` needs no GPU. Of each shape it writes FOLDER/MxNxK.EPILOGUE.NAME.zip: the chosen kernel,
its forms (`ptx_variants`), the chosen schedule with tiles in other orders, and of an epilogue the
same schedule for the plain product. `run` needs torch and no compiler. Graphs of a kernel and one
of one element in turns are replayed for a seventh of a second, of which the last tenth of a second
is timed, so that the clock has settled at the limit; the contenders, torch's product among them,
take turns forwards and backwards. A row has the median microseconds, what they are of the chosen
kernel's, the clock that the driver tells meanwhile, the watts of the second before, and the product
of time and clock, which is in cycles. `--rests` also measures as `epilogues.py run --rest 2
--clocks apart` does, in so many rounds. With `--cublaslt` the products of so many algorithms that
its heuristics propose take their turns, too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from contenders import check_known, comparison_parser, parsed
from cublaslt_algorithms import algorithms
from epilogue_functions import epilogues, is_near, sizes_of
from epilogues import PLAIN, source_of
from ptx_variants import FORMS, RIGHT, form_of

SHAPES = (
    "8192x8192x2048,4096x14336x4096,8192x4096x4096,4096x4096x14336,4096x4096x4096,8192x8192x8192,"
    "16384x4096x1024,2048x11008x4096"
)
CHOSEN, PRODUCT, CHIP = "chosen", "torch", "sm_90a"
ORDERS = ("m", "n", "hilbert", "grouped:4", "grouped:8", "grouped:12", "grouped:16", "grouped:32")
WARM_SECONDS, SETTLE_SECONDS, TIMED_SECONDS, POLL_SECONDS = 1.0, 0.04, 0.1, 0.01
GRAPH_SECONDS, LAUNCHES, FLOPS_A_SECOND = 0.01, 16, 650e12


class Window(NamedTuple):
    """A time under lasting load, and what the driver says of it."""

    us: float
    mhz: float
    watts: float


def main() -> int:
    options = parse_options()
    return {"compile": compile_all, "run": run_all}[options.what](options)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, SHAPES, rounds=4)
    parser.add_argument("--epilogue", default=PLAIN, help="of the product (default plain)")
    parser.add_argument("--forms", default=",".join(FORMS), help="by commas (default all)")
    parser.add_argument("--orders", default="grouped:16,hilbert", help="of tiles, by commas")
    parser.add_argument("--rests", type=int, default=0, help="rounds with rests, too (default 0)")
    parser.add_argument("--cublaslt", type=int, default=0, help="its algorithms (default none)")
    compiled = "target", "shapes", "epilogue", "forms", "orders"
    run = "shapes", "epilogue", "rounds", "json", "rests", "cublaslt"
    options = parsed(parser, compile=compiled, run=run)
    check_known(parser, "--epilogue", options.epilogue, [PLAIN, *epilogues()])
    check_known(parser, "--forms", options.forms, FORMS)
    check_known(parser, "--orders", options.orders, ORDERS)
    return options


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes; what has no such form is named and left out."""
    options.folder.mkdir(parents=True, exist_ok=True)
    for shape in options.shapes.split(","):
        write_forms(shape, options)
    return 0


def write_forms(shape: str, options: argparse.Namespace) -> None:
    from tilewright.compiler.backend import assemble
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    def write(name: str, made: Any) -> None:
        as_bundle(made, options.folder / f"{shape}.{options.epilogue}.{name.replace(':', '')}.zip")

    m, n, k = map(int, shape.split("x"))
    source = source_of(m, n, k, options.epilogue)
    chosen = compile_matmul(source, target=options.target)
    print(f"{shape:18} {chosen.pipeline}", file=sys.stderr)
    write(CHOSEN, chosen)
    for form in options.forms.split(","):
        try:
            ptx = form_of(chosen.ptx or "", form)
        except ValueError as error:
            print(f"{shape:18} {error}", file=sys.stderr)
            continue
        write(form, replace(chosen, ptx=ptx, assembled=assemble(ptx, chip=CHIP)))
    for order in options.orders.split(","):
        text = with_order(chosen.pipeline, order)
        if text != chosen.pipeline:
            write(order, compile_matmul(source, target=options.target, pipeline=text))
    if options.epilogue != PLAIN:
        plain = source_of(m, n, k, PLAIN)
        without = without_operands(chosen.pipeline)
        write(PLAIN, compile_matmul(plain, target=options.target, pipeline=without))


def with_order(pipeline: str, order: str) -> str:
    """The pipeline with tiles handed out in one of `ORDERS`, if it hands them out."""
    name, _, group = order.partition(":")
    options = f"order={name}" + (f" group={group}" if group else "")
    return re.sub(r"persistence\{[^}]*\}", f"persistence{{{options}}}", pipeline)


def without_operands(pipeline: str) -> str:
    """The pipeline for a kernel whose epilogue reads nothing."""
    return re.sub(r" (ahead|vectors)=\w+", "", pipeline).replace(",slot-reuse", "")


def run_all(options: argparse.Namespace) -> int:
    """A row for each kernel of each shape."""
    rows = []
    for shape in options.shapes.split(","):
        if any(options.folder.glob(f"{shape}.{options.epilogue}.*.zip")):
            rows += measure(shape, options)
    if not rows:
        wanted = f"bundles of {options.shapes} with --epilogue {options.epilogue}"
        print(f"error: {options.folder}: must hold {wanted}, got none", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if rows and all(row["right"] for row in rows) else 1


def measure(shape: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    import torch

    from tilewright.runtime import load
    from tilewright.runtime.gpu.graphs import APART, measure_in_graphs

    m, n, k = map(int, shape.split("x"))
    torch.manual_seed(0)
    on = {"device": "cuda", "dtype": torch.bfloat16}
    x, w = torch.randn(m, k, **on), torch.randn(n, k, **on) / k**0.5
    beside = [torch.randn(size, **on) for size in sizes_of(options.epilogue, m, n)]
    function = epilogues().get(options.epilogue, lambda sums: sums)
    sums = x.float() @ w.float().T
    wanted = function(sums, *(each.float() for each in beside))
    calls: dict[str, Callable[[int], Any]] = {PRODUCT: lambda _: torch.nn.functional.linear(x, w)}
    if options.cublaslt:
        proposed = algorithms(x, w, options.cublaslt)
        calls |= {f"cublaslt{number}": call for number, call in enumerate(proposed)}
    right = {name: is_near(call(0), sums) for name, call in calls.items()}
    for path in sorted(options.folder.glob(f"{shape}.{options.epilogue}.*.zip")):
        name, call = path.stem.split(".", 2)[2], load(path)
        more = [] if name == PLAIN else beside
        wrong = name in FORMS and name not in RIGHT
        right[name] = wrong or is_near(call(x, w, *more), sums if name == PLAIN else wanted)
        calls[name] = lambda _, call=call, more=more: call(x, w, *more)
    windows = lasting(calls, 2 * m * n * k / FLOPS_A_SECOND, options.rounds)
    rested = measure_in_graphs(calls, 1, options.rests, (APART,), 2)[APART] if options.rests else {}
    rows = []
    for name, found in windows.items():
        us, mhz, watts = (statistics.median(each) for each in zip(*found, strict=True))
        row = {"shape": shape, "name": name, "us": us, "mhz": mhz, "watts": watts}
        row |= {"rested_us": rested.get(name), "right": right[name]}
        rows.append(row)
    for row in rows:
        print(line_of(row, next(each for each in rows if each["name"] == CHOSEN)))
    return rows


def line_of(row: dict[str, Any], chosen: dict[str, Any]) -> str:
    """A row beside the chosen kernel's."""
    told = f"{row['shape']:18} {row['name']:15}{row['us']:9.1f} µs  {row['us'] / chosen['us']:.3f}"
    told += f"  {row['mhz'] / 1e3:.3f} GHz {row['watts']:5.0f} W"
    told += f"  {row['us'] * row['mhz'] / 1e3:8.0f} thousand cycles"
    if row["rested_us"]:
        told += f"  with rests {row['rested_us']:.1f} µs"
        told += f"  {row['rested_us'] / chosen['rested_us']:.3f}"
    return told + ("" if row["right"] else "  WRONG")


def lasting(
    calls: dict[str, Callable[[int], Any]], seconds: float, rounds: int
) -> dict[str, list[Window]]:
    """Windows of each contender, which takes about so many seconds a launch, in turns."""
    import torch

    from tilewright.runtime.gpu.timing import in_turn

    count = max(1, min(LAUNCHES, int(GRAPH_SECONDS / seconds)))
    one, graphs = torch.zeros(1, device="cuda"), {}
    for name, call in calls.items():
        call(0)
        torch.cuda.synchronize()
        graphs[name] = graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call(0)
                one.add_(1)
    driver, found = Driver(), {name: [] for name in graphs}
    until = time.time() + WARM_SECONDS
    while time.time() < until:
        for graph in graphs.values():
            window(graph, count, seconds, driver)
    for turn in range(rounds):
        for name in in_turn([*graphs], turn):
            found[name].append(window(graphs[name], count, seconds, driver))
    return found


def window(graph: Any, count: int, seconds: float, driver: Driver) -> Window:
    """Replays until the clock has settled, and then those that are timed."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    replays = max(2, int(TIMED_SECONDS / seconds / count))
    for _ in range(max(1, int(SETTLE_SECONDS / seconds / count))):
        graph.replay()
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    while not start.query():
        time.sleep(POLL_SECONDS / 10)
    told = [driver.mhz_and_watts()]
    while not end.query():
        told.append(driver.mhz_and_watts())
        time.sleep(POLL_SECONDS)
    mhz, watts = (statistics.mean(each) for each in zip(*told, strict=True))
    return Window(start.elapsed_time(end) * 1e3 / replays / count, mhz, watts)


class Driver:
    """The clock and the power of the first GPU, as NVML tells them; NaN where it doesn't."""

    SM_CLOCK = 1

    def __init__(self) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.nvml.nvmlInit_v2()
        self.device = ctypes.c_void_p()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def mhz_and_watts(self) -> tuple[float, float]:
        clock, power = ctypes.c_uint(), ctypes.c_uint()
        asked = self.nvml.nvmlDeviceGetClockInfo(self.device, self.SM_CLOCK, ctypes.byref(clock))
        asked |= self.nvml.nvmlDeviceGetPowerUsage(self.device, ctypes.byref(power))
        if asked:
            return math.nan, math.nan
        return float(clock.value), power.value / 1e3


if __name__ == "__main__":
    sys.exit(main())
