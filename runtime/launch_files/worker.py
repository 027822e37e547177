"""The process that `isolation` starts: runs the seeds, tells what happened."""

from __future__ import annotations

import os
import pickle
import sys
from typing import IO, Any

from ..child import too_much_memory, watch_parent
from ..errors import DeviceError
from .isolation import Request, pack_error
from .running import LaunchResult, run_once

CURE = "make the launch smaller"


def main() -> None:
    """Read a Request from stdin and answer on stdout; whatever else prints goes to stderr."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        request = pickle.load(sys.stdin.buffer)
        watch_parent(0)
        try:
            _tell(answers, "done", _run(request, answers))
        except DeviceError as error:
            _tell(answers, "failed", pack_error(error))
        except OSError as error:  # a file of ours: those of the launch are LaunchErrors
            _tell(answers, "unusable", error)
        except MemoryError:
            error = too_much_memory(request.launch_path, request.options.max_memory_bytes, CURE)
            _tell(answers, "failed", pack_error(error))
        except Exception as error:
            _tell(answers, "internal", f"{type(error).__name__}: {error}")


def _run(request: Request, answers: IO[bytes]) -> LaunchResult:
    for seed in request.seeds:
        _tell(answers, "seed", seed)
        result = run_once(request.ptx_path, request.launch_path, seed, request.options)
    return result


def _tell(answers: IO[bytes], kind: str, value: Any) -> None:
    pickle.dump((kind, value), answers)
    answers.flush()


if __name__ == "__main__":
    main()
