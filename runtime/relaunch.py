"""A fast path for launches on tensors like those of an earlier launch, in C if built.

tensors → torch's guards recognize them → addresses and stream → the launch kept for these
        → cuLaunchKernelEx

`Relauncher` is what this means, and runs where there is no extension. `_relaunch.c` does the same
in C, and takes the driver's functions and what they are given as addresses. It looks for launches
that it met lately before it asks `launches`, so what is kept there under a key must stay right.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .errors import DeviceError

VARIABLE = "TILEWRIGHT_LAUNCH"
WAYS = ("c", "python")
INTERFACE = 3
"""The number of what `_relaunch.c` takes and does; an extension that has another is not used."""


class Known(NamedTuple):
    """A launch that is kept: what cuLaunchKernelEx takes, the first two by address.

    `held` is what must live as long.
    """

    parameters: int
    config_address: int
    config: Any
    held: Any


class Nothing:
    """Before any launch, and where none is quicker than the first."""

    def launch(self, tensors: tuple[Any, ...], stream: int | None) -> bool:
        del tensors, stream
        return False

    def launch_into(self, inputs: tuple[Any, ...], out: Any, stream: int | None) -> bool:
        del inputs, out, stream
        return False

    def launch_new(self, inputs: tuple[Any, ...], stream: int | None) -> Any:
        del inputs, stream


NOTHING = Nothing()


class Relauncher:
    """Launches of one kernel on tensors of one form.

    launch: cuLaunchKernelEx, of cuda-python; in C its address.
    function: the kernel; in C its address.
    launches: those that are kept, by the tensors' addresses, the workspaces' and the stream.
    failed: is given a status that is not 0, and the launch; raises, or has launched it.
    recognizes, recognizes_inputs: whether tensors have the form; the latter without the last one.
    make: a new last one, None where it cannot be quick; or None.
    captures: whether a graph captures torch's current stream, which is left alone then; or None. In
        C the address of cuStreamIsCapturing, or 0.
    stream_of: torch's current stream of a GPU, by the `index`; or None.
    workspaces: addresses of those of a stream; or None.
    count_up: lets torch know of a tuple of tensors that they change.
    """

    def __init__(
        self,
        launch: Callable[..., tuple[Any, ...]],
        function: Any,
        *,
        launches: Mapping[tuple[Any, ...], Known],
        failed: Callable[[int, Known], None],
        recognizes: Callable[..., bool],
        recognizes_inputs: Callable[..., bool] | None,
        make: Callable[[], Any] | None,
        captures: Callable[[], bool] | None,
        stream_of: Callable[[int], int] | None,
        index: int,
        workspaces: Callable[[int], tuple[int, ...]] | None,
        count_up: Callable[[tuple[Any, ...]], Any],
    ):
        self._launch, self._function, self._launches = launch, function, launches
        self._failed, self._count_up, self._make = failed, count_up, make
        self._recognizes, self._recognizes_inputs = recognizes, recognizes_inputs
        self._captures, self._stream_of, self._index = captures, stream_of, index
        self._workspaces = workspaces

    def launch(self, tensors: tuple[Any, ...], stream: int | None) -> bool:
        """Whether the kernel is on its way for these tensors, in the manifest's order.

        Else nothing was done: they are of another form, or new on this stream.
        """
        return self._recognizes(*tensors) and self._launch_on(tensors, stream)

    def launch_into(self, inputs: tuple[Any, ...], out: Any, stream: int | None) -> bool:
        """The same for the inputs and one output behind them, of which torch learns."""
        launched = self.launch((*inputs, out), stream)
        if launched:
            self._count_up((out,))
        return launched

    def launch_new(self, inputs: tuple[Any, ...], stream: int | None) -> Any:
        """A new output, the kernel being on its way; None where nothing was done."""
        if self._make is None or self._recognizes_inputs is None:
            return None
        out = self._make() if self._recognizes_inputs(*inputs) else None
        return out if out is not None and self._launch_on((*inputs, out), stream) else None

    def _launch_on(self, tensors: tuple[Any, ...], stream: int | None) -> bool:
        if stream is None and self._stream_of is not None:
            if self._captures is not None and self._captures():
                return False
            stream = self._stream_of(self._index)
        if type(stream) is not int:
            return False
        own = () if self._workspaces is None else self._workspaces(stream)
        known = self._launches.get((*[each.data_ptr() for each in tensors], *own, stream))
        if known is None:
            return False
        status = self._launch(known.config, self._function, known.parameters, 0)[0]
        if status:
            self._failed(int(status), known)
        return True


@functools.cache
def extension() -> Any:
    """The module of `_relaunch.c`; None where it was not built, or from other sources.

    $TILEWRIGHT_LAUNCH decides: "python" leaves it out, "c" insists. Raises DeviceError where that
    cannot be.
    """
    way = os.environ.get(VARIABLE, "")
    if way not in ("", *WAYS):
        raise DeviceError(f"{VARIABLE}: must be {' or '.join(WAYS)}, got '{way}'; unset it")
    found = None if way == "python" else _built()
    if way == "c" and found is None:
        cure = "install a C compiler and tilewright again"
        raise DeviceError(f"{VARIABLE}: must be python without the extension, got 'c'; {cure}")
    return found


def _built() -> Any:
    try:
        found = importlib.import_module(f"{__package__}._relaunch")
    except ImportError:
        return None
    return found if found.INTERFACE == INTERFACE else None
