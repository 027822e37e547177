"""Planted faults in launches that were made before."""

from __future__ import annotations

from fault import Fault

LAUNCHES = [
    Fault(
        "tracing: a loaded kernel gives tensors without the gradient that torch wants",
        '    return any(getattr(value, "requires_grad", False) for value in values)\n',
        "    return not values\n",
        ("test/runtime/test_called_kernels.py",),
    ),
    Fault(
        "again: torch does not learn that an output changes",
        "            self._count_up((out,))\n",
        "            pass\n",
        ("test/runtime/cuda",),
    ),
    Fault(
        "program: a launch on another stream takes the configuration of the first",
        "        config = self._configs.get(stream) or self._configure(stream)\n",
        "        config = next(iter(self._configs.values()), None) or self._configure(stream)\n",
        ("test/runtime/cuda",),
    ),
    Fault(
        "program: a parameter at the address of an earlier tensor takes that one's tensor map",
        '        key = position, addresses[declared["tensor"]]\n',
        '        key = 0, addresses[declared["tensor"]]\n',
        ("test/runtime/cuda",),
    ),
    Fault(
        "captures: one of several launches in front may be another's",
        "            if not nodes or any(self._function",
        "            if not nodes or all(self._function",
        ("test/runtime/cuda/test_captures.py",),
    ),
    Fault(
        "direct-calls: a kernel is believed to know the tensors of its key",
        "    if kernel is None or not kernel.relaunched((a, b), out):\n",
        "    if kernel is None or kernel.relaunched((a, b), out) is None:\n",
        ("test/inductor/test_direct_calls.py",),
    ),
    Fault(
        "again: what a graph captures is launched as what runs",
        "            if self._captures is not None and self._captures():\n",
        "            if self._captures is None and self._captures():\n",
        ("test/runtime/cuda",),
    ),
]

ADDRESSES = [
    Fault(
        "program: inputs of a known form need no copy, wherever they begin",
        "            each.data_ptr() % bytes_of_it == 0\n",
        "            bytes_of_it > 0\n",
        ("test/runtime/cuda/test_calls_with_torch_tensors.py",),
    ),
    Fault(
        "overlaps: an output behind the beginning of an operand is apart from it",
        "            if begin < start + bytes_of_other and start < begin + bytes_of_output:\n",
        "            if begin <= start < begin + bytes_of_output:\n",
        ("test/runtime/test_overlaps.py",),
    ),
]

LAUNCH_FILES = [
    Fault(
        "binding: a map of pixels in a launch file takes the upper corner for the lower one",
        '        return Im2colMap(*place, **declared["im2col"], **fields)\n',
        '        column = declared["im2col"]\n'
        '        return Im2colMap(*place, **column | {"lower": column["upper"]}, **fields)\n',
        ("test/emulator/tensor_copies/test_im2col.py",),
    ),
]
