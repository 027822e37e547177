"""Planted faults in how views around the product of a torch module are read."""

from __future__ import annotations

from fault import Fault

OF_MODULES = "test/compiler/test_views_of_modules.py"

VIEWS = [
    Fault(
        "view-chains: a slice of dims in another order is one of the dim at its place",
        "inner = Chain(self.shape, self.steps[:-1]).slice((order[dim], start, step, count))",
        "inner = Chain(self.shape, self.steps[:-1]).slice((dim, start, step, count))",
        (OF_MODULES,),
    ),
    Fault(
        "viewed-products: a part of the columns begins with the first one",
        "                found = found.slice((dim - self.outer, *part))\n",
        "                found = found.slice((dim - self.outer, 0, *part[1:]))\n",
        (OF_MODULES,),
    ),
    Fault(
        "viewed-graph: an example that repeats elements is taken for a view that does",
        "        view = _without_repeats(view, stacks_alone=multiplied)\n",
        "        given = self._values[number].stride()\n"
        "        for dim in (n for n, step in enumerate(given) if not step and not view.steps):\n"
        "            view = view.slice((dim, 0, 1, 1))\n"
        "        view = _without_repeats(view, stacks_alone=multiplied)\n",
        (OF_MODULES,),
    ),
    Fault(
        "torch-views: operands of an elementwise operator may show the product in any two orders",
        "        if len(chains) > 1 or len(shapes) > 1:\n",
        "        if len(shapes) > 1:\n",
        (OF_MODULES,),
    ),
]
WIDER = [
    Fault(
        "viewed-products: a product that is asked for f32 has the type of its operands",
        "            return graph.call_function(overload, (*taken, *self.node.args[2:]))\n",
        "            return graph.call_function(product.default, tuple(taken))\n",
        (OF_MODULES,),
    ),
]
BITS = [
    Fault(
        "torch-view-ops: bits that are read as another type are the same numbers",
        "    if given.dtype != made.dtype:",
        "    if False:",
        (OF_MODULES,),
    ),
    Fault(
        "module: a view that was read of one shape is taken of another",
        "            if name in values and tuple(values[name].shape) != shape:",
        "            if False:",
        (OF_MODULES,),
    ),
    Fault(
        "module: one weight by two names may become two",
        "    if tied and not tied <= _tied(module):",
        "    if False:",
        (OF_MODULES,),
    ),
    Fault(
        "module: hooks of all modules may be others than when it was compiled",
        '._replace(hooks=(*found[""].hooks, *own), read=read)}\n',
        "._replace(read=read)}\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
]
