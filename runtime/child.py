"""Child processes that end with this one, and have limits that they cannot lift.

What a child may use is set between fork and exec, so before it has read anything, and stays over
exec: wall seconds by its alarm clock (setitimer(2)), address space by RLIMIT_AS, soft and hard.
The parent ends whatever is still there a little later. When the parent dies, by SIGKILL too, the
kernel kills the child (prctl(2), PR_SET_PDEATHSIG: when the thread ends that started it, which
here waits for it); where there is no prctl, the child watches a pipe that its parent holds open.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from .errors import DeviceError

DEFAULT_SECONDS = 600.0
DEFAULT_MEMORY_BYTES, LEAST_MEMORY_BYTES = 16 * 2**30, 2**30
GRACE_SECONDS = 0.5
"""How long a child that is told to end may clean up, and how much later than its alarm clock the
parent's rings."""
MEMORY_CURE = "make it smaller or raise --max-memory"
_PR_SET_PDEATHSIG = 1
NOT_STARTED = (126, 127)
"""Exit status of a shell whose command cannot be executed."""


_OUT_OF_MEMORY = re.compile(
    r"bad_alloc|out of memory|(cannot|can't|could not|unable to) allocate|failed to map segment"
    r"|memory allocation .*failed",
    re.IGNORECASE,
)


CompletedTool = subprocess.CompletedProcess[str]


_starting = threading.RLock()
"""Held while a program is started: a child that another thread forked meanwhile would hold the ends
of its pipes, and who reads them would wait for the end of that child."""
os.register_at_fork(
    before=_starting.acquire,
    after_in_parent=_starting.release,
    after_in_child=_starting.release,
)


class ChildError(DeviceError):
    """A child crashed or went beyond its limits."""


class Limits(NamedTuple):
    """Wall seconds and bytes of address space of a child; None for as many as there are."""

    seconds: float | None = None
    memory_bytes: int | None = None


def python_module(module: str, *words: str) -> list[str]:
    """The command that runs a module of ours, whatever lies in the current folder."""
    return [sys.executable, "-P", "-m", module, *words]


def _begun(command: Sequence[str], **streams: Any) -> Any:
    """A process that was started while no other thread forked."""
    with _starting:
        return subprocess.Popen(command, **streams)


def start(command: Sequence[str], limits: Limits, **streams: Any) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, so that `end` reaches what it starts in turn.

    streams: keywords of subprocess.Popen. Call it in the thread that then waits for the child.
    """
    arenas = os.environ.get("MALLOC_ARENA_MAX", "8")  # each reserves 64 MiB of address space
    streams.setdefault("env", {**os.environ, "MALLOC_ARENA_MAX": arenas})
    streams |= {"preexec_fn": _preparation(limits), "start_new_session": True}
    return _begun(command, **streams)


def run_tool(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> CompletedTool:
    """Run a program that ends with us; TimeoutExpired when it takes longer, OSError as of Popen.

    environment: variables of its own beside ours.

    Where setpriv(1) is, it lets the kernel kill the program when we end. A preexec_fn would do the
    same, but makes Python fork, which copies the page tables of a process that has loaded torch:
    20 ms, where vfork takes one.
    """
    guard, variables = _guard(), {**os.environ, **(environment or {})}
    if guard:
        done = _run([*guard, str(os.getpid()), *command], folder, seconds, variables)
        if done.returncode not in NOT_STARTED:
            return done
    return _run(command, folder, seconds, variables, dying_with_us())


def start_tool(
    command: Sequence[str],
    folder: Path,
    said: IO[bytes],
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes] | None:
    """Start a program as `run_tool` does and do not wait; None where there is no setpriv(1).

    said: takes what it prints. Call it in the thread that then waits for the program. OSError as of
    Popen; a program that cannot be executed ends with a status of `NOT_STARTED`.
    """
    guard, variables = _guard(), {**os.environ, **(environment or {})}
    if not guard:
        return None
    words = [*guard, str(os.getpid()), *command]
    return _begun(
        words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said
    )


def _run(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    variables: Mapping[str, str],
    prepare: Callable[[], None] | None = None,
) -> CompletedTool:
    pipe = subprocess.PIPE
    how = {"preexec_fn": prepare, **_streams(folder, variables)}
    with _begun(command, stdout=pipe, stderr=pipe, **how) as process:
        try:
            said, errors = process.communicate(timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return CompletedTool(command, process.returncode, said, errors)


def _streams(folder: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    stdin = subprocess.DEVNULL
    return {"cwd": folder, "env": variables, "text": True, "errors": "replace", "stdin": stdin}


@functools.cache
def _guard() -> tuple[str, ...] | None:
    """The words before our process id and a command that let it end with us; None where none do.

    The shell looks whether we are still its parent: we may have ended before we could be watched.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return None
    shell = ("/bin/sh", "-c", 'test "$PPID" = "$0" && exec "$@"')
    words = (setpriv, "--pdeathsig", "KILL", *shell)
    try:
        tried = subprocess.run(
            [*words, str(os.getpid()), "true"], capture_output=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return words if tried.returncode == 0 else None


def dying_with_us() -> Callable[[], None]:
    """A preexec_fn for subprocess: the child is killed when the thread that starts it ends."""
    prctl, parent = _prctl(), os.getpid()

    def prepare() -> None:
        if prctl:
            prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before it could be watched
            os._exit(1)

    return prepare


def _preparation(limits: Limits) -> Callable[[], None]:
    die, wanted = dying_with_us(), limits.memory_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    memory = wanted if wanted is None or hard < 0 else min(hard, wanted)  # RLIM_INFINITY is -1

    def prepare() -> None:
        die()
        ours = (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP)
        for each in ours:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
        signal.setitimer(signal.ITIMER_REAL, limits.seconds or 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return prepare


@functools.cache
def _prctl() -> Callable[..., int] | None:
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None


def watch_parent(pipe: int) -> None:
    """In a child: end it when the other end of the pipe is closed, which its parent holds."""

    def watch() -> None:
        while os.read(pipe, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def end(process: subprocess.Popen[bytes]) -> int:
    """End a child of `start` and all that it started; its return code, negative for a signal.

    It is told first, and killed after GRACE_SECONDS.
    """
    if process.returncode is not None:
        return process.returncode
    try:
        if not has_ended(process):
            process.terminate()
            wait_for(process, GRACE_SECONDS)
    finally:
        _kill_group(process)
        process.wait()
    return process.wait()


def wait_for(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Wait until a child has ended, without reaping it; False when it has not by then."""
    limit = None if seconds is None else time.monotonic() + seconds
    while not has_ended(process):
        if limit is not None and time.monotonic() > limit:
            return False
        time.sleep(0.005)
    return True


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended; it is not reaped, so that its process group stays its own."""
    if process.returncode is not None:
        return True
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a zombie's group
        process.kill()


def crash_of(status: int) -> str:
    """How a child ended that did not say it itself, from its return code."""
    if status >= 0:
        return f"exit status {status}"
    if -status not in set(signal.Signals):
        return f"signal {-status}"
    meaning = signal.strsignal(-status)
    name = signal.Signals(-status).name
    return f"{name} ({meaning.lower()})" if meaning else name


def says_out_of_memory(text: str) -> bool:
    """Whether native code says that it got no memory, in any library's words."""
    return _OUT_OF_MEMORY.search(text) is not None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error is one of memory, or comes of one.

    CPython calls an import that a MemoryError ended in the wrong place a SystemError, at times
    without a cause: below the least limit that a command takes, that is the limit.
    """
    if isinstance(error, MemoryError) or says_out_of_memory(str(error)):
        return True
    if not isinstance(error, SystemError):
        return False
    before = error.__cause__ or error.__context__
    if before is not None and is_out_of_memory(before):
        return True
    limit = memory_limit()
    return limit is not None and limit < LEAST_MEMORY_BYTES


def too_much_memory(where: str, memory_bytes: int | None, cure: str = MEMORY_CURE) -> ChildError:
    """The error of what needs more than its limit, or than there is."""
    most = f"{memory_bytes / 2**30:.4g} GiB of memory" if memory_bytes else "this machine's memory"
    return ChildError(f"{where}: must run within {most}, got more; {cure}")


def memory_limit() -> int | None:
    """Bytes of address space that this process may have; None for any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft < 0 else soft
