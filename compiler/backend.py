"""LLVM IR → PTX → cubin: LLVM's NVPTX back end, then NVIDIA's assembler.

Neither tool is imported or searched for before it is needed, so that `tilewright opt` starts fast.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..dialects.errors import CompileError
from ..runtime.child import CompletedTool, crash_of, run_tool
from ..runtime.locks import free_in_children
from ..runtime.scratch import scratch_folder
from ..runtime.version import VERSION
from .concurrency import run_concurrently
from .llvm_floats import in_older_syntax
from .ptxas_ahead import INPUT, PtxasAhead, started

Result = TypeVar("Result")
SIMPLIFIES, HIGHEST = 1, 3
"""Levels of LLVM. Kernels whose MMAs run by themselves are as fast at the lower one, since ptxas
does again what higher ones do; where threads multiply, higher ones join their loads
(docs/decisions/lowering.md)."""
RUNS_BY_ITSELF = re.compile(r"wgmma\.mma_async|tcgen05\.mma")
TRIPLE = "nvptx64-nvidia-cuda"
PTXAS_VARIABLE = "TILEWRIGHT_PTXAS"
SECONDS_VARIABLE = "TILEWRIGHT_PTXAS_SECONDS"
PTXAS_SECONDS = 300.0
PTXAS_CURE = (
    f"pip install 'nvidia-cuda-nvcc>=13.5.37,<13.6' or set {PTXAS_VARIABLE} to a ptxas of CUDA 13"
)
SHOWN_LINES = 8
# glibc's memory in large pages, 32 MB at a time: ptxas then meets a fifth to a third of the page
# faults, which take a sixth of its time. Whoever has set it has reasons of their own.
MEMORY = {"GLIBC_TUNABLES": f"glibc.malloc.hugetlb=1:glibc.malloc.top_pad={32 << 20}"}
# At its highest level ptxas sometimes spills a word far below the register limit; a lower one does
# not (docs/decisions/lowering.md).
PTXAS_LEVELS = (3, 2, 1)
NO_ROOM = re.compile(r"uses too (much|many)|[Rr]egister allocation failed")
"""What ptxas says of a kernel that a chip has no room for."""
SERIALIZED = "wgmma.mma_async instructions are serialized"


class RoomError(CompileError):
    """The chip has too few registers, or too little memory per CTA or thread, for a kernel: another
    schedule may fit."""


@dataclass(frozen=True)
class Assembled:
    """What ptxas made of one PTX module, and what `ptxas -v` says about it.

    Registers are per thread, the maximum over the module's functions; spills and stack are bytes
    per thread, static shared memory is bytes per CTA, each summed over the functions.
    """

    cubin: bytes = field(repr=False)
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_shared_bytes: int
    log: str

    @property
    def serialized(self) -> bool:
        """Whether ptxas waits for each wgmma before the next one (its advice C7510 and C7511)."""
        return SERIALIZED in self.log


def emit_ptx(
    llvm_ir: str,
    *,
    chip: str = "sm_100a",
    ptx_feature: str = "+ptx88",
    meanwhile: Callable[[], None] | None = None,
    late: Callable[[], None] | None = None,
) -> str:
    """Optimise LLVM IR text and return the PTX that LLVM's NVPTX back end emits for `chip`.

    `meanwhile` is called while the optimizer runs, and `late` while the back end does. Raises
    CompileError when LLVM refuses the IR.
    """
    llvm = _llvm()
    module = _parse(llvm, llvm_ir)
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=chip, features=ptx_feature, opt=HIGHEST
    )
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    level = SIMPLIFIES if RUNS_BY_ITSELF.search(llvm_ir) else HIGHEST
    _optimize(llvm, module, machine, level, meanwhile)
    return _beside(late, lambda: machine.emit_assembly(module))


def _beside(python: Callable[[], None] | None, native: Callable[[], Result]) -> Result:
    """What native code gives, beside which Python runs, if anything."""
    if python is None:
        return native()
    given: list[Result] = []
    run_concurrently(lambda: given.append(native()), python)
    return given[0]


def _optimize(llvm, module, machine, level: int, meanwhile: Callable[[], None] | None) -> None:
    """Run LLVM's passes of a level; at the lowest those that simplify each function."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_unrolling = False  # the lowering unrolls what pays; the rest only costs registers
    builder = llvm.create_pass_builder(machine, options)
    whole = level > SIMPLIFIES
    manager = builder.getModulePassManager() if whole else builder.getFunctionPassManager()
    defined = [function for function in module.functions if not function.is_declaration]

    def run() -> None:
        for each in [module] if whole else defined:
            manager.run(each, builder)

    try:
        _beside(meanwhile, run)
    finally:
        _free(manager)


def _free(manager) -> None:
    """Free a pass manager with its passes, which hold about 200 KB after a run.

    llvmlite 0.50 never does: of the bases ObjectRef and NewPassManager, the first one's empty
    `_dispose` hides the second one's.
    """
    from llvmlite.binding.newpassmanagers import NewPassManager

    NewPassManager._dispose(manager)
    manager.detach()  # so that a llvmlite that frees it does not free it again


def assembler_ahead(
    *, chip: str = "sm_100a", keep_order: bool = False
) -> AbstractContextManager[PtxasAhead | None]:
    """Start a ptxas now, for an `assemble` inside the block that gets it."""
    command = _command(find_ptxas(), "", chip, _levels(keep_order)[0])
    return started(command, _variables())


def assemble(
    ptx: str,
    *,
    chip: str = "sm_100a",
    allow_spills: bool = False,
    keep_order: bool = False,
    ahead: PtxasAhead | None = None,
) -> Assembled:
    """Assemble PTX text for `chip` with ptxas and read its resource report.

    With `keep_order` arithmetic stays after the barriers that stand before it, as ptxas has it at
    its lowest level (docs/decisions/hopper.md). `ahead` is a ptxas of `assembler_ahead`.

    Raises CompileError when ptxas is missing, when it refuses the PTX (its first lines are quoted)
    and, unless `allow_spills`, when registers spill to local memory. Where that, or what it
    refuses, is for want of room, it is a `RoomError`.
    """
    tried = []
    for level in _levels(keep_order):
        tried.append(_assemble_at(level, ptx, chip, ahead))
        if not _spills(tried[-1]):
            return tried[-1]
    if not allow_spills:
        _refuse_spills(tried[0])
    return tried[0]


def _levels(keep_order: bool) -> tuple[int, ...]:
    """Optimization levels of ptxas, in the order in which they are tried."""
    return PTXAS_LEVELS[::-1] if keep_order else PTXAS_LEVELS


def _assemble_at(level: int, ptx: str, chip: str, ahead: PtxasAhead | None) -> Assembled:
    cubin, log = _run_ptxas(find_ptxas(), ptx, chip, level, ahead)
    return _read_report(cubin, log)


def _spills(assembled: Assembled) -> bool:
    return assembled.spill_store_bytes > 0 or assembled.spill_load_bytes > 0


def find_ptxas() -> Path:
    """The path of ptxas: that in the environment, else that of the nvidia-cuda-nvcc wheel."""
    named = os.environ.get(PTXAS_VARIABLE)
    if named:
        return _checked_ptxas(Path(named))
    for found in _ptxas_of_wheels():
        return found
    raise CompileError(f"ptxas: must be installed, found none; {PTXAS_CURE}")


def versions() -> dict[str, str]:
    """Versions of the tools that take part in a compilation: tilewright, mlir, llvm, ptxas."""
    return {
        "tilewright": VERSION,
        "mlir": _mlir_version(),
        "llvm": ".".join(str(part) for part in _llvm().llvm_version_info),
        "ptxas": ptxas_version(str(find_ptxas())),
    }


@functools.cache
def ptxas_version(ptxas: str) -> str:
    """Release of the ptxas at this path, such as "13.5.37"."""
    printed = _execute([ptxas, "--version"], Path.cwd()).stdout
    found = re.search(r"\bV(\d+(?:\.\d+)+)", printed)
    return found.group(1) if found else "unknown"


@functools.cache
def _mlir_version() -> str:
    from ..dialects.mlir import PACKAGE

    found = _version_in_metadata(PACKAGE)
    return f"{PACKAGE} {found}" if found else f"{PACKAGE}, unknown version"


def _version_in_metadata(package: str) -> str:
    """The version that an installed package's metadata tell, "" where there are none.

    `importlib.metadata` reads every such file as an e-mail; to import what that takes needs 30 ms.
    """
    spec = importlib.util.find_spec(package.replace("-", "_"))
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        name = f"{Path(folder).name}-*.dist-info/METADATA"
        for metadata in Path(folder).parent.glob(name):
            found = re.search(r"^Version: (\S+)$", metadata.read_text("utf-8"), re.MULTILINE)
            if found:
                return found[1]
    return ""


@functools.cache
def _llvm():
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        cure = "pip install 'llvmlite>=0.50.0,<0.51'"
        raise CompileError(f"llvm: llvmlite must be installed, got {error}; {cure}") from error
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    free_in_children(llvm.ffi.lib._lock._lock)  # which a thread holds for as long as LLVM runs
    return llvm


@functools.cache
def _context_of(process: int):
    """The LLVM context of this process: a child forked while LLVM runs has its parent's in an
    unknown state."""
    return _llvm().create_context()


def _parse(llvm, llvm_ir: str):
    try:
        module = llvm.parse_assembly(in_older_syntax(llvm_ir), _context_of(os.getpid()))
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"llvm: IR must parse and verify, got: {_first_lines(error)}") from error
    return module


def _checked_ptxas(named: Path) -> Path:
    if not named.is_file():
        raise CompileError(f"{PTXAS_VARIABLE}: must name a file, got '{named}'; {PTXAS_CURE}")
    if not os.access(named, os.X_OK):
        raise CompileError(f"{PTXAS_VARIABLE}: must be executable, got '{named}'; {PTXAS_CURE}")
    return named


def _ptxas_of_wheels() -> list[Path]:
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    places = [Path(folder) for folder in folders or ()]
    return [found for place in places for found in sorted(place.glob("cu1*/bin/ptxas"))]


def _run_ptxas(
    ptxas: Path, ptx: str, chip: str, level: int, ahead: PtxasAhead | None = None
) -> tuple[bytes, str]:
    command = _command(ptxas, ptx, chip, level)
    done = _in_time(ahead.finish, command, ptx) if ahead else None
    if ahead and done:
        return _made(ptxas, done, ahead.folder)
    with scratch_folder() as folder:
        (folder / INPUT).write_text(ptx, encoding="utf-8")
        done = _execute(command, folder)
        if done.returncode != 0:
            log = done.stdout + done.stderr
            got = crash_of(done.returncode) if done.returncode < 0 else _first_lines(log)
            kind = RoomError if NO_ROOM.search(log) else CompileError
            raise kind(f"ptxas: the PTX must assemble for {chip}, got: {got}")
        return _made(ptxas, done, folder)


def _command(ptxas: Path, ptx: str, chip: str, level: int) -> list[str]:
    """The command that assembles PTX in the current folder."""
    options = [f"-O{level}", f"-arch={chip}", "-v", "-o", "kernel.cubin"]
    if _has_lines(ptx):
        options.append("-lineinfo")  # the cubin says the same; its instructions stay the same
    return [str(ptxas), *options, INPUT]


def _made(ptxas: Path, done: CompletedTool, folder: Path) -> tuple[bytes, str]:
    cubin = folder / "kernel.cubin"
    if not cubin.is_file():
        raise CompileError(f"ptxas: '{ptxas}' must write a cubin, got none; {PTXAS_CURE}")
    return cubin.read_bytes(), done.stdout + done.stderr


def _has_lines(ptx: str) -> bool:
    """Whether the PTX has `.loc` directives."""
    return re.search(r"^\s*\.loc\s", ptx, re.MULTILINE) is not None


def _execute(command: list[str], folder: Path) -> CompletedTool:
    def run(command: list[str], folder: Path, seconds: float) -> CompletedTool:
        return run_tool(command, folder, seconds, _variables())

    try:
        return _in_time(run, command, folder)
    except OSError as error:
        reason = f"ptxas: '{command[0]}' must run, got {error.strerror}; {PTXAS_CURE}"
        raise CompileError(reason) from error


def _in_time(run: Callable[..., Result], *arguments: object) -> Result:
    """What it gives, which gets the seconds that ptxas may take after its arguments."""
    seconds = _ptxas_seconds()
    try:
        return run(*arguments, seconds)
    except subprocess.TimeoutExpired as error:
        rule = f"ptxas: must be done within {seconds:g} s, got no end"
        raise CompileError(f"{rule}; raise {SECONDS_VARIABLE}") from error


def _variables() -> dict[str, str]:
    return MEMORY | os.environ


def _ptxas_seconds() -> float:
    """The time limit of a run of ptxas, in wall seconds."""
    text = os.environ.get(SECONDS_VARIABLE) or str(PTXAS_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e6:
        rule = f"{SECONDS_VARIABLE}: must be seconds above 0 and up to 1e6"
        raise CompileError(f"{rule}, got {text!r}; unset it")
    return seconds


def _first_lines(log: object) -> str:
    lines = [line for line in str(log).strip().splitlines() if line.strip()]
    rest = len(lines) - SHOWN_LINES
    more = [f"… and {rest} more lines"] if rest > 0 else []
    return "\n  ".join(lines[:SHOWN_LINES] + more) or "no message"


def _read_report(cubin: bytes, log: str) -> Assembled:
    return Assembled(
        cubin=cubin,
        registers=max(_numbers(r"Used (\d+) registers", log), default=0),
        spill_store_bytes=sum(_numbers(r"(\d+) bytes spill stores", log)),
        spill_load_bytes=sum(_numbers(r"(\d+) bytes spill loads", log)),
        stack_bytes=sum(_numbers(r"(\d+) bytes stack frame", log)),
        static_shared_bytes=sum(_numbers(r"(\d+) bytes smem", log)),
        log=log,
    )


def _numbers(pattern: str, log: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, log)]


def _refuse_spills(assembled: Assembled) -> None:
    stores, loads = assembled.spill_store_bytes, assembled.spill_load_bytes
    raise RoomError(
        f"ptxas: registers must not spill, got {stores} bytes of stores and {loads} of loads"
        " a thread; choose a smaller tile or allow spills"
    )
