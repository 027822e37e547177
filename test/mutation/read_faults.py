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
        "module-reads: nobody looks at what methods of objects read",
        "        elif code not in seen:\n",
        "        elif code is kind:\n",
        READ,
    ),
    Fault(
        "module-reads: the environment is what it was",
        "    if named & ENVIRONMENT:\n",
        "    if named == ENVIRONMENT:\n",
        READ,
    ),
    Fault(
        "function-keys: a module's code may take random numbers, a clock or an iterator",
        "        if not isinstance(value, ModuleType) and _is_changing(value):\n",
        "        if value is read:\n",
        READ,
    ),
    Fault(
        "module-values: a module that is no part is what it was",
        "    return own | _of_module(value) if is_module(value) else own\n",
        "    return own\n",
        READ,
    ),
    Fault(
        "module-values: classes are what they were",
        "    for each in classes_of_user(kind)[::-1]:\n",
        "    for each in classes_of_user(kind)[:0]:\n",
        READ,
    ),
    Fault(
        "module-reads: what a module has itself is kept with its code",
        "    if own or classes_of_user(kind):  # which may hold whole modules, or change\n"
        "        return _read_by(kind, own, called)\n"
        "    return _read_by_class(kind, called)\n",
        "    return _KEPT(kind, own, called)\n\n\n_KEPT = functools.lru_cache(1024)("
        "lambda *given: _read_by(*given))\n",
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
        "_slots_of(kind) if hasattr(value, name)}\n",
        "()}\n",
        READ,
    ),
    Fault(
        "module-values: a function has nothing from around it",
        "        held = around(value) | _named(vars(value), names)\n",
        "        held = _named(vars(value), names)\n",
        READ,
    ),
    Fault(
        "function-keys: an iterator gives the same each time",
        "    return is_open or isinstance(value, Iterator)\n",
        "    return is_open\n",
        ("test/compiler/calls/test_function_keys.py",),
    ),
    Fault(
        "function-keys: random numbers and clocks are as other functions",
        '    is_open = made_in in CHANGING or made_in.startswith("numpy.random.")\n',
        "    is_open = made_in in CHANGING[:0]\n",
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
