"""The process that `isolation` starts: limits itself, runs the seeds, tells what happened."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
from typing import IO, Any

from ..errors import DeviceError, LaunchError
from .isolation import Request, pack_error
from .running import LaunchResult, run_once

MAX_MEMORY_BYTES = 16 * 2**30


def main() -> None:
    """Read a Request from stdin and answer on stdout; whatever else prints goes to stderr."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        request = pickle.load(sys.stdin.buffer)
        _limit(request.options.max_seconds)
        try:
            _tell(answers, "done", _run(request, answers))
        except DeviceError as error:
            _tell(answers, "failed", pack_error(error))
        except MemoryError:
            _tell(answers, "failed", pack_error(_too_much_memory(request)))
        except Exception as error:
            _tell(answers, "internal", f"{type(error).__name__}: {error}")


def _limit(seconds: float) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MAX_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MAX_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _run(request: Request, answers: IO[bytes]) -> LaunchResult:
    for seed in request.seeds:
        _tell(answers, "seed", seed)
        result = run_once(request.ptx_path, request.launch_path, seed, request.options)
    return result


def _tell(answers: IO[bytes], kind: str, value: Any) -> None:
    pickle.dump((kind, value), answers)
    answers.flush()


def _too_much_memory(request: Request) -> LaunchError:
    rule = f"must run within {MAX_MEMORY_BYTES >> 30} GiB of memory, got more"
    return LaunchError(f"{request.launch_path}: {rule}; make the launch smaller")


if __name__ == "__main__":
    main()
