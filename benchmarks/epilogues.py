"""How fast matmuls with fused epilogues are, beside the matmul alone, torch, cublasLt, Inductor.

    python benchmarks/epilogues.py compile FOLDER [--target sm_90a] [--shapes 4096x4096x4096,…]
                                                  [--only gelu,silu] [--math fast]
    python benchmarks/epilogues.py count FOLDER [--json PATH]
    python benchmarks/epilogues.py run FOLDER [--shapes …] [--only …] [--rounds 15] [--json PATH]
                                              [--no-inductor | --turns FILE]

`compile` needs no GPU, but torch to trace epilogues. It writes FOLDER/MxNxK.EPILOGUE.zip, bf16 with
the weight as N×K, and FOLDER/MxNxK.plain.zip. A name such as residual.turns asks for a schedule of
`WAYS`. `count` needs nvdisasm: it prints the instructions an element of C that a kernel has beyond
the plain one's, which is one element's share of the code that a thread executes once a tile, and
the bytes of all its code. `run`
needs no compiler: `runtime` importable as tilewright.runtime, torch, numpy and cuda-python. Every
contender is compared with torch in float32 first, captured in a CUDA graph of several calls, and
takes turns with the others; times are medians. Inductor tunes itself (max-autotune), which takes up
to half a minute an epilogue and shape: several calls may share a GPU, each with shapes of its own,
where `--turns` names the same file for all. One of them measures at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contenders import captured, check_known, comparison_parser, parsed, reported, timed

SHAPES = (
    "2048x4096x1024,4096x4096x4096,8192x8192x2048,8192x4096x4096,2048x11008x4096,4096x14336x4096,"
    "4096x4096x14336,8192x8192x8192,1024x4096x4096,512x14336x4096,16384x4096x1024,4096x1024x4096"
)
PLAIN, PING = "plain", "ping"
INSTRUCTION_BYTES = 16
GELU_CUBIC = 0.044715
OTHERS = ("eager", "cublaslt", "inductor")
OPERANDS = {
    "bias": ["n"],
    "scale_bias": ["n", "n"],
    "row_scale": ["m"],
    "residual": ["mn"],
    "gelu_tanh_gradient": ["mn"],
}
"""What indexes the operands of an epilogue that has some."""
FUNCTIONS = ("gelu", "gelu_tanh", "silu", "gelu_tanh_gradient")
"""Epilogues that `--math` is about."""
CUBLASLT = {"relu": {"use_gelu": False}, "gelu_tanh": {"use_gelu": True}}
"""What torch asks of cublasLt's own epilogues beside that of `linear`, which adds a bias."""
VECTORS = ("threads", "ahead", "registers")
"""Ways to read vectors: the chosen schedule with this option of `epilogue-staging`."""


WAYS = {
    "threads": "128x256x64 0 4",
    "few": "128x256x64 2 4",
    "whole": "128x256x64 8 3",
    "narrow": "128x192x64 6 4",
    "turns": "128x128x64 6 5 ping-pong",
}
"""Schedules that differ in how another operand as large as C arrives: the tile, how many pieces of
it are ahead, and the stages."""


def pipeline_of(way: str, chosen: str) -> str:
    """The pipeline of one of `WAYS`, or the chosen one with vectors read in one of `VECTORS`."""
    if way in VECTORS:
        plain = re.sub(r" vectors=\w+", "", chosen)
        return re.sub(r"(epilogue-staging\{[^}]*)", rf"\1 vectors={way}", plain)
    tile, ahead, stages, *last = WAYS[way].split()
    staging = f"epilogue-staging{{columns=32 buffers=2 ahead={ahead}}}"
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,{staging}"
    roles = f"pipelining{{stages={stages}}},warp-specialization"
    return ",".join([head, roles, "persistence{order=grouped group=8}", *last])


def epilogues() -> dict[str, Callable[..., Any]]:
    """Functions of the sums, and of operands of `OPERANDS`."""
    from torch.nn import functional

    return {
        "bias": lambda acc, bias: acc + bias,
        "relu": lambda acc: functional.relu(acc),
        "gelu": lambda acc: functional.gelu(acc),
        "gelu_tanh": lambda acc: functional.gelu(acc, approximate="tanh"),
        "silu": lambda acc: functional.silu(acc),
        "residual": lambda acc, residual: acc + residual,
        "scale_bias": lambda acc, scale, bias: acc * scale + bias,
        "row_scale": lambda acc, scale: acc * scale,
        "gelu_tanh_gradient": gelu_tanh_gradient,
    }


def gelu_tanh_gradient(acc: Any, x: Any) -> Any:
    """The gradient of GELU (tanh) at x, times that of its result."""
    import torch

    x = x.float()
    slope = math.sqrt(2 / math.pi) * (1 + 3 * GELU_CUBIC * x * x)
    tanh = torch.tanh(math.sqrt(2 / math.pi) * (x + GELU_CUBIC * x * x * x))
    return acc * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * slope)


def main() -> int:
    options = parse_options()
    return {"compile": compile_all, "count": count_all, "run": run_all}[options.what](options)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, SHAPES, ("compile", "count", "run"))
    parser.add_argument("--only", default=",".join(epilogues()), help="epilogues, by commas")
    parser.add_argument("--math", choices=("fast", "exact"), help="policy of the functions")
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    parser.add_argument("--turns", metavar="FILE", help="share the GPU with calls of the same FILE")
    compiled = "target", "shapes", "only", "math"
    run = "shapes", "only", "rounds", "json", "no_inductor", "turns"
    options = parsed(parser, compile=compiled, count=("json",), run=run)
    names = [*epilogues()]
    ways = [f"{name}.{way}" for name in names for way in (*WAYS, *VECTORS)]
    check_known(parser, "--only", options.only, [*names, *ways])
    return options


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes and epilogues."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    options.folder.mkdir(parents=True, exist_ok=True)
    for shape in options.shapes.split(","):
        for each in (PLAIN, *options.only.split(",")):
            m, n, k = map(int, shape.split("x"))
            name, _, way = each.partition(".")
            source = source_of(m, n, k, name)
            kind = {"target": options.target, "math": options.math if name in FUNCTIONS else None}
            compiled = compile_matmul(source, **kind)
            if way:
                how = pipeline_of(way, compiled.pipeline)
                compiled = compile_matmul(source, **kind, pipeline=how)
            as_bundle(compiled, options.folder / f"{shape}.{each}.zip")
            print(f"{shape}.{each:12} {compiled.pipeline}", file=sys.stderr)
    return 0


def source_of(m: int, n: int, k: int, name: str) -> Any:
    """The product with an epilogue, as the compiler takes it."""
    import torch

    from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.importers.traced_function import TensorLike
    from tilewright.compiler.spec import MatmulSpec

    spec = MatmulSpec(m, n, k)
    if name == PLAIN:
        return spec
    likes = [TensorLike(size, torch.bfloat16) for size in sizes_of(name, m, n)]
    spec, made, *_ = import_epilogue(spec, Frame.of([m, n], 0), epilogues()[name], likes)
    names = ("a", "b", *(f"e{number}" for number in range(len(likes))))
    return LinalgText(spec.mlir_text(made), "matmul", names)


def sizes_of(name: str, m: int, n: int) -> list[tuple[int, ...]]:
    """The shapes of an epilogue's operands, as the function of torch takes them."""
    sizes = {"mn": (m, n), "n": (n,), "m": (m, 1)}
    return [sizes[each] for each in OPERANDS.get(name, [])]


def count_all(options: argparse.Namespace) -> int:
    """A table of instructions for each kernel of a shape beside the plain one."""
    found = {path.stem: instructions(path) for path in sorted(options.folder.glob("*.zip"))}
    rows = []
    for stem, (own, elements) in found.items():
        shape, _, name = stem.partition(".")
        plain, _ = found[f"{shape}.{PLAIN}"]
        more = {each: own[each] - plain[each] for each in own if own[each] != plain[each]}
        each = sum(more.values()) / elements
        special = sum(count for name, count in more.items() if name.startswith("MUFU")) / elements
        row = {"kernel": stem, "instructions": each, "mufu": special, "more": more}
        rows.append(row | {"code_bytes": own.total() * INSTRUCTION_BYTES})
        said = f"{each:6.2f} an element, {special:5.2f} of them MUFU; " if name != PLAIN else ""
        print(f"{stem:40} {said}{rows[-1]['code_bytes'] / 1000:.0f} kB")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


def instructions(path: Path) -> tuple[Counter[str], int]:
    """How often each opcode stands in the SASS, and the elements of C that a thread has of a tile.

    Code of an epilogue is unrolled: it stands once for each element.
    """
    from tilewright.compiler.inspect_sass import disassemble, parse_kernel
    from tilewright.runtime.bundles.bundle import read_bundle

    bundle = read_bundle(path)
    sass = disassemble(bundle.cubin)
    if sass is None:
        sys.exit("error: count: needs nvdisasm; pip install 'nvidia-cuda-nvdisasm'")
    manifest = bundle.manifest
    m, n, _ = manifest["schedule"]["tile"]
    warps = {role["name"]: role["warps"] for role in manifest["names"]["roles"]}
    threads = 32 * warps.get("consumer", warps.get(PING, 0))
    program = parse_kernel(sass, manifest["entry"])
    copies = 2 if PING in warps else 1  # of the code, one for each consumer
    return Counter(each.text.split()[0] for each in program), copies * m * n // threads


def run_all(options: argparse.Namespace) -> int:
    """A table of times for each shape and epilogue."""
    from tilewright.runtime import load

    rows = []
    times = timed
    if options.turns:
        from model_times import take_turns

        times = take_turns(options.turns)(timed)
    for shape in options.shapes.split(","):
        if (options.folder / f"{shape}.{PLAIN}.zip").exists():
            plain = load(options.folder / f"{shape}.{PLAIN}.zip")
            for name in options.only.split(","):
                kernel = load(options.folder / f"{shape}.{name}.zip")
                calls = shape, name, plain, kernel, not options.no_inductor
                rows.append(measure(*calls, times=lambda graphs: times(graphs, options.rounds)))
    for row in rows:
        row["best"] = min(row[each] for each in OTHERS if each in row)
    for against in (PLAIN, *OTHERS, "best"):
        ratios = [row[against] / row["fused"] for row in rows if against in row]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{against} / fused: geometric mean {mean:.3f}, least {min(ratios):.3f}")
    return reported(rows, options.json)


def measure(
    shape: str, name: str, plain: Any, kernel: Any, inductor: bool, times: Callable[..., Any]
) -> dict[str, Any]:
    """Times in microseconds of every contender, and whether all outputs are right."""
    import torch

    m, n, k = map(int, shape.split("x"))
    shown, name = name, name.partition(".")[0]
    torch.manual_seed(0)
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5
    sizes = sizes_of(name, m, n)
    beside = [torch.randn(size, device="cuda", dtype=torch.bfloat16) for size in sizes]
    calls = contenders(name, plain, kernel, (x, w, beside), inductor)
    wanted = epilogues()[name](x.float() @ w.float().T, *(each.float() for each in beside))
    right = True
    for contender, call in calls.items():
        if contender != PLAIN:
            error = (call().float() - wanted).abs().max().item() / wanted.abs().max().item()
            right &= error < 2**-6
    taken_us = times({each: captured(call) for each, call in calls.items()})
    told = "  ".join(f"{each} {us:8.1f}" for each, us in taken_us.items())
    cost = taken_us["fused"] / taken_us[PLAIN]
    best = min(us for each, us in taken_us.items() if each in OTHERS) / taken_us["fused"]
    mark = "" if right else "  WRONG"
    print(f"{shape:18} {shown:16} {told}  fused/plain {cost:.3f}  best/fused {best:.3f}{mark}")
    return {"shape": shape, "epilogue": shown, **taken_us, "right": right}


def contenders(
    name: str, plain: Any, kernel: Any, operands: tuple[Any, Any, list[Any]], inductor: bool
) -> dict[str, Callable[[], Any]]:
    """Ours with and without the epilogue, torch's operators, cublasLt's, and Inductor's kernels."""
    import torch

    x, w, beside = operands
    taken = [each.squeeze(1) if each.shape[-1] == 1 else each for each in beside]
    eager = torchs(name)
    found: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: plain(x, w),
        "fused": lambda: kernel(x, w, *taken),
        "eager": lambda: eager(x, w, *beside),
    }
    if name in CUBLASLT:
        none = torch.zeros(w.shape[0], device=w.device, dtype=w.dtype)
        found["cublaslt"] = lambda: torch._addmm_activation(none, x, w.T, **CUBLASLT[name])
    if inductor:
        torch._dynamo.reset()
        compiled = torch.compile(eager, mode="max-autotune-no-cudagraphs")
        found["inductor"] = lambda: compiled(x, w, *beside)
    return found


def torchs(name: str) -> Callable[..., Any]:
    """The same by torch's own operators; a bias is one of its linear."""
    import torch
    from torch.nn.functional import linear

    epilogue = epilogues()[name]
    if name == "bias":
        return linear
    if name == "gelu_tanh_gradient":
        return lambda x, w, beside: torch.ops.aten.gelu_backward(
            linear(x, w), beside, approximate="tanh"
        )
    return lambda x, w, *beside: epilogue(linear(x, w), *beside)


if __name__ == "__main__":
    sys.exit(main())
