"""Launches on tensors like earlier ones: `_relaunch.c` and relaunch.py do the same for any of
them."""

import ctypes
import gc
import random
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tilewright.runtime import DeviceError
from tilewright.runtime import relaunch as way_of_python
from tilewright.runtime.gpu.operands import counter, maker, recognizer
from tilewright.runtime.relaunch import NOTHING, Known, Relauncher, extension

FUNCTION, INDEX = 0xF00, 3
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
IS_CAPTURING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))


class Launches:
    """What takes launches, by Python and by its address, and notes the bytes that it is given."""

    def __init__(self):
        self.noted, self.status, self.sizes, self.asked, self.held = [], 0, {}, [], []
        self.by_address = LAUNCH(self._launch)
        self.address = ctypes.cast(self.by_address, ctypes.c_void_p).value

    def _launch(self, config, function, parameters, extra):
        values = (ctypes.c_void_p * len(self.sizes[parameters])).from_address(parameters)
        pairs = zip(values, self.sizes[parameters], strict=True)
        given = [ctypes.string_at(value, size) for value, size in pairs]
        self.noted.append((config, function, given, extra or 0))
        return self.status

    def __call__(self, config, function, parameters, extra):
        return (self._launch(id(config), function, parameters, extra),)

    def capturing(self, answer):
        """The address of what answers (status, capture) for a stream; `asked` has those."""

        def is_capturing(stream, found):
            self.asked.append(stream or 0)
            status, found[0] = answer()
            return status

        self.held.append(IS_CAPTURING(is_capturing))
        return ctypes.cast(self.held[-1], ctypes.c_void_p).value

    def known(self, draw):
        """A launch with a configuration and parameters of its own."""
        sizes = [draw.choice((4, 8, 128)) for _ in range(draw.randint(1, 5))]
        values = [ctypes.create_string_buffer(draw.randbytes(size), size) for size in sizes]
        table = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        config, address = object(), ctypes.addressof(table)
        self.sizes[address] = sizes
        return Known(address, id(config), config, (table, values))


def tensor_like(draw, value):
    """Another tensor of this form, or one of a form that is different in one thing."""
    shape, strides, dtype = list(value.shape), list(value.stride()), value.dtype
    change = draw.choice(("none",) * 6 + ("shape", "strides", "dtype", "type", "gradient", "rank"))
    if change == "shape":
        shape[draw.randrange(2)] += 1
    if change == "rank":
        shape, strides = shape[:1], strides[:1]
    if change == "strides":
        strides = strides[::-1]
    made = torch.empty_strided(shape, strides, dtype=torch.int16 if change == "dtype" else dtype)
    if change == "type":
        return draw.choice((np.zeros((2, 3)), None, 3.0, made.as_subclass(Named)))
    return made.requires_grad_() if change == "gradient" and made.is_floating_point() else made


class Named(torch.Tensor):
    """A tensor of a type that torch doesn't make itself."""


def some_tensors(draw):
    """Tensors of some forms; a few of each that a launch may get."""
    dtypes = (torch.float16, torch.float32, torch.bfloat16, torch.int8)
    first = []
    for _ in range(draw.randint(2, 5)):
        shape = draw.randint(1, 9), draw.randint(10, 19)
        value = torch.empty(shape, dtype=draw.choice(dtypes))
        first.append(value.T if draw.random() < 0.3 else value)
    others = [[value, *(tensor_like(draw, value) for _ in range(4))] for value in first]
    return tuple(first), others


class Both:
    """The same launches by C and by Python; what differs between them fails."""

    def __init__(self, module, draw, driver):
        self.driver, self.draw, self.failures = driver, draw, []
        self.first, self.pools = some_tensors(draw)
        self.needs, self.stream = draw.random() < 0.3, draw.randrange(3)
        self.launches, self.is_captured = {}, False
        has_stream, makes, asks = (draw.random() < rate for rate in (0.8, 0.8, 0.5))
        shared = {
            "launches": self.launches,
            "failed": self.failed,
            "recognizes": recognizer(self.first),
            "recognizes_inputs": recognizer(self.first[:-1]) if makes else None,
            "make": self.make if makes else None,
            "stream_of": (lambda index: self.stream + index - INDEX) if has_stream else None,
            "index": INDEX,
            "workspaces": (lambda stream: (stream + 100, 7)) if self.needs else None,
            "count_up": counter(self.first[-1]),
        }
        address = driver.capturing(self.capture) if asks else 0
        python = (lambda: self.is_captured) if asks else None
        self.ways = (
            module.Relauncher(launch=driver.address, function=FUNCTION, captures=address, **shared),
            Relauncher(launch=driver, function=FUNCTION, captures=python, **shared),
        )

    @property
    def key(self):
        """Of the tensors that are kept for sure."""
        own = (self.stream + 100, 7) if self.needs else ()
        return (*(each.data_ptr() for each in self.first), *own, self.stream)

    def failed(self, status, known):
        self.failures.append((status, known))
        if status == 700:
            raise DeviceError("launch: gone")

    def capture(self):
        """That a graph captures the stream, or that the driver cannot say."""
        return self.draw.choice([(0, 1), (0, 2), (201, 0)]) if self.is_captured else (0, 0)

    def make(self):
        """The same tensor for both ways, or none."""
        return self.next

    def keep(self, tensors, stream):
        own = (stream + 100, 7) if self.needs else ()
        if all(isinstance(each, torch.Tensor) for each in tensors):
            key = (*(each.data_ptr() for each in tensors), *own, stream)
            self.launches[key] = self.driver.known(self.draw)

    def call(self, method, *given):
        """What one call gives and does, by either way."""
        outcomes = []
        tensors = [each for pool in self.pools for each in pool if isinstance(each, torch.Tensor)]
        for way in self.ways:
            before = [each._version for each in tensors]
            del self.driver.noted[:], self.failures[:]
            try:
                result = getattr(way, method)(*given)
            except (DeviceError, TypeError) as error:
                result = type(error), str(error) if isinstance(error, DeviceError) else ""
            bumps = [each._version - version for each, version in zip(tensors, before, strict=True)]
            outcomes.append((result, list(self.driver.noted), list(self.failures), bumps))
        c, python = outcomes
        assert c[0] is python[0] or c[0] == python[0]
        assert c[1:] == python[1:]
        return c


STREAMS = (None, None, 0, 1, 2, 1.5, "5", True)


@pytest.mark.parametrize("seed", range(30))
def test_both_ways_launch_the_same_for_any_tensors(extension, seed):
    draw = random.Random(seed)
    driver = Launches()
    both = Both(extension, draw, driver)
    for _ in range(12):
        both.keep(tuple(draw.choice(pool) for pool in both.pools), draw.randrange(3))
    both.keep(both.first, both.stream)
    for _ in range(60):
        tensors = tuple(draw.choice(pool[: draw.choice((1, 2, 5))]) for pool in both.pools)
        if draw.random() < 0.1:
            tensors = tensors[: draw.randrange(1, len(tensors))]
        stream = draw.choice((*STREAMS, both.stream))
        driver.status = draw.choice((0,) * 8 + (400, 700))
        new = draw.choice(both.pools[-1])
        both.is_captured = draw.random() < 0.2
        both.next = draw.choice((None, both.first[-1], new if torch.is_tensor(new) else None))
        method = draw.choice(("launch", "launch_into", "launch_new"))
        if method == "launch_into":
            both.call(method, tensors[:-1], tensors[-1], stream)
        else:
            both.call(method, tensors if method == "launch" else tensors[:-1], stream)
    driver.status = 0
    done, noted, _, _ = both.call("launch", both.first, both.stream)
    assert done is True
    assert [each[:2] for each in noted] == [(both.launches[both.key].config_address, FUNCTION)]


@pytest.fixture(params=["c", "python"])
def way(request):
    """way(**arguments): an `Relauncher` that launches by C or by Python."""

    def made(driver, **arguments):
        given = {"failed": None, "recognizes_inputs": None, "make": None, "stream_of": None}
        given |= {"index": INDEX, "workspaces": None, "count_up": lambda written: None, **arguments}
        if request.param == "python":
            return Relauncher(launch=driver, function=FUNCTION, captures=None, **given)
        module = request.getfixturevalue("extension")
        return module.Relauncher(launch=driver.address, function=FUNCTION, captures=0, **given)

    return made


@pytest.fixture
def in_c(extension):
    """in_c(driver, launches=…): an `Relauncher` of the extension that recognizes whatever it
    gets."""

    def made(driver, **arguments):
        given = {"failed": None, "recognizes": lambda *tensors: True, "recognizes_inputs": None}
        given |= {"make": None, "stream_of": None, "index": INDEX, "workspaces": None}
        given |= {"count_up": None, "function": FUNCTION, "captures": 0, **arguments}
        return extension.Relauncher(launch=driver.address, **given)

    return made


def tensors_at(*addresses):
    return tuple(Lying(lambda address=address: address) for address in addresses)


@pytest.mark.parametrize("count", [1, 3, 23, 24, 25, 40])
def test_each_of_many_launches_is_found_again_whatever_was_launched_between(in_c, count):
    """More than the extension remembers by itself; what has too many tensors is left to Python."""
    draw, driver = random.Random(count), Launches()
    launches, streams = {}, (0, 5, 2**64 - 1)
    again = in_c(driver, launches=launches)
    for _ in range(200):
        addresses = [draw.choice((0, 512, 2**40, 2**63)) + draw.randrange(8) for _ in range(count)]
        launches[*addresses, draw.choice(streams)] = driver.known(draw)
    for *addresses, stream in draw.choices(list(launches), k=1000):
        del driver.noted[:]
        done = again.launch(tensors_at(*addresses), stream)
        assert done is (count < 24)
        known = launches[*addresses, stream]
        assert [each[0] for each in driver.noted] == [known.config_address] * done
        assert not again.launch(tensors_at(*addresses[1:], addresses[0] + 8), stream)


@pytest.mark.parametrize("number", [-1, 2**64, 2**64 + 5, True, 5.0, None])
def test_numbers_that_are_no_addresses_are_left_to_python(in_c, number):
    driver = Launches()
    known = driver.known(random.Random(0))
    again = in_c(driver, launches={(64, 5): known})
    assert again.launch(tensors_at(64), 5)
    assert not again.launch(tensors_at(number), 5)
    assert not again.launch(tensors_at(64), number)
    assert len(driver.noted) == 1


def test_an_address_is_asked_of_the_type_that_a_tensor_has(in_c):
    """One type's method is kept; a type of Python, or another of C, answers for itself."""
    driver = Launches()
    value = torch.zeros(4)

    class Elsewhere(torch.Tensor):
        def data_ptr(self):
            return 64

    tensors = [value, value.as_subclass(Named), value.as_subclass(Elsewhere), Lying(lambda: 128)]
    addresses = [value.data_ptr(), value.data_ptr(), 64, 128]
    known = {(address, 5): driver.known(random.Random(0)) for address in addresses}
    again = in_c(driver, launches=known)
    for index in [0, 1, 2, 3, 3, 2, 1, 0, 2, 0, 3]:
        del driver.noted[:]
        assert again.launch((tensors[index],), 5)
        assert driver.noted[0][0] == known[addresses[index], 5].config_address


class Lying:
    """What lies at an address, and may not say so."""

    def __init__(self, data_ptr):
        self.data_ptr = data_ptr


ASKED = ("recognizes", "recognizes_inputs", "stream_of", "workspaces", "make", "count_up")


@pytest.mark.parametrize("broken", [*ASKED, "data_ptr"])
def test_an_error_of_whatever_is_asked_comes_through(way, broken):
    def fail(*given):
        raise ArithmeticError(broken)

    driver = Launches()
    tensor = Lying(fail if broken == "data_ptr" else lambda: 64)
    given = {
        "launches": {(64, 64, 5): driver.known(random.Random(0))},
        "recognizes": lambda *tensors: True,
        "recognizes_inputs": lambda *tensors: True,
        "stream_of": lambda index: 5,
        "workspaces": lambda stream: (),
        "make": lambda: tensor,
    }
    assert way(driver, **given).launch_into((Lying(lambda: 64),), Lying(lambda: 64), None)
    again = way(driver, **(given | ({broken: fail} if broken in ASKED else {})))
    with pytest.raises(ArithmeticError, match=broken):
        if broken in ("make", "recognizes_inputs"):
            again.launch_new((tensor,), None)
        again.launch_into((tensor,), tensor, None)


def test_other_threads_run_while_the_driver_launches(in_c):
    """sem_timedwait stands for a driver whose queue is full until another thread has done more."""
    library = ctypes.CDLL(None)
    semaphore = ctypes.create_string_buffer(64)
    library.sem_init(semaphore, 0, 0)
    deadline = (ctypes.c_long * 2)(int(time.time()) + 30, 0)
    known = Known(0, ctypes.addressof(semaphore), None, None)
    failures = []
    driver = SimpleNamespace(address=ctypes.cast(library.sem_timedwait, ctypes.c_void_p).value)
    again = in_c(
        driver,
        function=ctypes.addressof(deadline),
        launches={(64, 5): known},
        failed=lambda *given: failures.append(given),
    )
    thread = threading.Thread(target=again.launch, args=((Lying(lambda: 64),), 5))
    thread.start()
    library.sem_post(semaphore)
    thread.join()
    assert not failures


def test_launches_that_nobody_holds_are_gone(way):
    class Holder:
        """Of what leads back to itself."""

        def recognizes(self, *tensors):
            return True

    holder = Holder()
    holder.again = way(Launches(), launches={}, recognizes=holder.recognizes)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_before_any_launch_nothing_is_done():
    tensors = (torch.zeros(2),)
    assert NOTHING.launch(tensors, None) is NOTHING.launch_into(tensors, tensors[0], None) is False
    assert NOTHING.launch_new(tensors, None) is None


@pytest.fixture
def asked(monkeypatch):
    """asked(way, module): the extension, with this in the environment and that module built."""

    def found(way, module):
        monkeypatch.setenv(way_of_python.VARIABLE, way)
        monkeypatch.setattr(way_of_python, "_built", lambda: module)
        return extension.__wrapped__()

    return found


def test_the_environment_leaves_the_extension_out_or_insists(asked):
    module = SimpleNamespace()
    assert asked("", module) is asked("c", module) is module
    assert asked("python", module) is asked("", None) is asked("python", None) is None
    with pytest.raises(DeviceError, match=r"TILEWRIGHT_LAUNCH: must be python without the ext"):
        asked("c", None)
    with pytest.raises(DeviceError, match=r"TILEWRIGHT_LAUNCH: must be c or python, got 'C'"):
        asked("C", module)


@pytest.mark.parametrize("interface", [way_of_python.INTERFACE, way_of_python.INTERFACE + 1])
def test_an_extension_of_other_sources_is_not_used(monkeypatch, interface):
    module = SimpleNamespace(INTERFACE=interface)
    monkeypatch.setitem(sys.modules, "tilewright.runtime._relaunch", module)
    expected = module if interface == way_of_python.INTERFACE else None
    assert way_of_python._built() is expected


def test_both_ways_have_one_interface(extension):
    assert extension.INTERFACE == way_of_python.INTERFACE


def test_new_outputs_are_made_only_on_the_current_gpu(monkeypatch):
    monkeypatch.setattr("torch._C._cuda_getDevice", lambda: 1, raising=False)
    empty = torch._C._dynamo.guards._empty_strided_cpu
    monkeypatch.setattr("torch._C._dynamo.guards._empty_strided_cuda", empty)
    a = {"name": "a", "role": "input"}
    c = {"name": "c", "role": "output", "shape": [3, 5], "strides": [7, 1], "dtype": "f16"}
    tensors = torch.zeros(2), torch.zeros(3, 5)
    made = maker([a, c], tensors, 1)()
    assert (made.shape, made.stride(), made.dtype) == ((3, 5), (7, 1), torch.float16)
    assert maker([a, c], tensors, 0)() is None
    assert maker([c, a], tensors, 1) is maker([c, c], tensors, 1) is None
