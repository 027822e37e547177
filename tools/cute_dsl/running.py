"""A program of the CuTe DSL, whose launches the emulator runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ...runtime.emulator.host.programs import load_program
from ...runtime.errors import LaunchError
from ..programs.execution import execute
from ..programs.launch_files import Asked
from ..programs.launches import Launches, Options
from . import dsl, library


def run_program(
    program: Path, arguments: Sequence[str], options: Options, tell: Callable[[str], None]
) -> int:
    """Run a program with its arguments; its exit status. Raises what has stopped a launch."""
    from ..programs.torch_tensors import cuda_on_host

    capability, sms = options.capability(), options.multiprocessors
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        launches = Launches(options, Path(name), tell)
        built = library.build(launches.folder)
        with cuda_on_host(launches.memory, sms, capability):
            loaded = library.load(built)
            kernels = dsl.Compiled()
            serving = library.serve(loaded, runner(launches, kernels), sms, capability[0])
            dsl.prepare(kernels, options.target, built, launches, sms)
            status = execute(program, arguments, launches)
        del serving
        return launches.end(status)


def runner(launches: Launches, kernels: dsl.Compiled) -> Callable[[library.HostLaunch], bool]:
    """Runs what a host program launches, and says whether it went well: C cannot raise."""

    def run(launch: library.HostLaunch) -> bool:
        try:
            launches.run(_asked(launch, kernels))
        except Exception as error:
            launches.failure = launches.failure or error
            return False
        return True

    return run


def _asked(launch: library.HostLaunch, kernels: dsl.Compiled) -> Asked:
    text = kernels.ptx(launch.kernel, launch.image)
    if text is None:
        rule = "must have been compiled in this process, to have PTX"
        raise LaunchError(f"{launch.kernel}: {rule}; turn caches off")
    sizes = [size for _, _, size in load_program(text, launch.kernel).parameter_sizes()]
    return Asked(
        launch.kernel, text, launch.grid, launch.block, launch.cluster, launch.shared_bytes,
        [launch.parameter(number, size) for number, size in enumerate(sizes)], launch.cooperative,
    )  # fmt: skip
