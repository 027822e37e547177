"""The extension of launches keeps no reference and loses none, whatever a call ends with."""

import ctypes
import random
import sys
import threading

import pytest

from tilewright.runtime.relaunch import Known

SUCCESS, FAILURE = "pthread_equal", "getpid"  # which give 0 for these arguments, and a number


class At:
    """What lies at an address."""

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


def fail(*given):
    raise ArithmeticError


TENSORS = At(64), At(128)
KNOWN = Known(1, 2, object(), object())
LAUNCHES = {(64, 128, 5): KNOWN, (128, 64, 5): KNOWN}
ENDS = {
    "launched": {},
    "none is kept": {"launches": {}},
    "not recognized": {"recognizes": lambda *tensors: False, "recognizes_inputs": lambda a: False},
    "the guards fail": {"recognizes": fail, "recognizes_inputs": fail},
    "no stream": {"stream_of": fail},
    "no workspaces": {"workspaces": fail},
    "workspaces of no tuple": {"workspaces": lambda stream: [1]},
    "a workspace nowhere": {"workspaces": lambda stream: ("nowhere",)},
    "no output": {"make": lambda: None},
    "an output of nothing": {"make": lambda: At(None)},
    "making fails": {"make": fail},
    "counting fails": {"count_up": fail},
    "the driver fails": {"launch": FAILURE, "failed": fail},
    "the driver fails at first": {"launch": FAILURE},
    "a graph captures": {"captures": FAILURE},
    "a launch of other things": {"launches": dict.fromkeys(LAUNCHES, ("here", "there"))},
}


def made(module, **other):
    given = {"launch": SUCCESS, "captures": SUCCESS, "launches": LAUNCHES, "function": 3}
    given |= {"failed": lambda status, known: None, "recognizes": lambda *tensors: True}
    given |= {"recognizes_inputs": lambda *tensors: True, "make": lambda: TENSORS[1]}
    given |= {"stream_of": lambda index: 5, "index": 0, "workspaces": None}
    given |= {"count_up": lambda written: None, **other}
    library = ctypes.CDLL(None)
    for name in ("launch", "captures"):
        function = getattr(library, given[name])
        given[name] = ctypes.cast(function, ctypes.c_void_p).value
    return module.Relauncher(**given)


@pytest.mark.parametrize("end", ENDS)
def test_every_call_leaves_the_counts_of_references_as_they_were(extension, end):
    again = made(extension, **ENDS[end])
    calls = {
        "launch": (TENSORS, None),
        "launch_into": (TENSORS[:1], TENSORS[1], None),
        "launch_new": (TENSORS[:1], None),
    }
    watched = (*TENSORS, KNOWN, KNOWN.config, again, *calls.values(), *ENDS[end].values())
    before = None
    for _ in range(50):
        for name, given in calls.items():
            try:
                getattr(again, name)(*given)
            except (ArithmeticError, TypeError):
                continue
        if before is None:  # the first call's launch is kept
            before = [sys.getrefcount(each) for each in watched]
    assert [sys.getrefcount(each) for each in watched] == before


def test_threads_share_what_launches(extension):
    launches = {(64 * i, 64 * j, 5): Known(i, j, None, None) for i in range(20) for j in range(20)}
    kept, again, outcomes = dict(launches), made(extension, launches=launches), []

    def work(seed):
        draw = random.Random(seed)
        for _ in range(2000):
            tensors = At(64 * draw.randrange(20)), At(64 * draw.randrange(20))
            outcomes.append(again.launch(tensors, draw.choice((5, None))))
            if draw.random() < 0.01:  # as the program does with a table that is full
                launches.clear()
                launches.update(kept)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8000
    assert outcomes.count(True) > 7500
