"""Faults in what is seen of a module's code and of what it reads."""

from __future__ import annotations

from fault import Fault

CHANGED = ("test/compiler/calls/test_changed_modules.py",)
READ = ("test/compiler/calls/test_what_modules_read.py",)
READS = [
    Fault(
        "module-form: the type of what code makes of numbers is not looked at",
        "        yield DEFAULT, torch.get_default_dtype\n",
        "        pass\n",
        CHANGED,
    ),
    Fault(
        "module-form: states that code of a module asks torch for may change",
        "    for name in sorted(STATES & names):\n",
        "    for name in sorted(STATES - STATES):\n",
        READ,
    ),
    Fault(
        "module-reads: nobody looks at functions around a function",
        "    for name in sorted(around(function)):\n",
        "    for name in sorted(around(function))[:0]:\n",
        READ,
    ),
    Fault(
        "module-reads: code reads no attributes but those that it names",
        "    if names & BY_ANY_NAME:\n",
        "    if names == BY_ANY_NAME:\n",
        READ,
    ),
    Fault(
        "module-values: a set is what it was",
        "        return kind, *sorted(map(inner, value), key=repr)\n",
        "        return (kind,)\n",
        READ,
    ),
    Fault(
        "module-values: objects have no slots",
        "    slots = _slots_of(kind) if is_of_user(kind.__module__) else ()\n",
        "    slots = ()\n",
        READ,
    ),
    Fault(
        "module-values: a function has nothing from around it",
        "        return code_of(value.__code__), *around_it\n",
        "        return (code_of(value.__code__),)\n",
        READ,
    ),
    Fault(
        "function-keys: an iterator gives the same each time",
        "    if any(value is each for each in OPEN) or isinstance(value, Iterator):\n",
        "    if any(value is each for each in OPEN):\n",
        ("test/compiler/calls/test_function_keys.py",),
    ),
    Fault(
        "function-keys: random numbers and clocks are as other functions",
        '    if made_in in CHANGING or made_in.startswith("numpy.random."):\n',
        "    if made_in in CHANGING[:0]:\n",
        ("test/compiler/calls/test_function_keys.py",),
    ),
    Fault(
        "traced-function: code that asks finds gradients as tracing has them",
        "    with torch.set_grad_enabled(records):\n",
        "    with torch.set_grad_enabled(False):\n",
        ("test/compiler/calls/test_function_keys.py",),
    ),
    Fault(
        "module-watch: what no identity tells is what it was",
        "        return all(is_same(value, of()) for of, value, is_same in self._equal)\n",
        "        return True\n",
        READ,
    ),
]
