"""Random calls of the public functions, each with what it should give in float64.

A call is drawn by its seed alone: the function, its sizes, types, layouts, schedule and everything
that may be said beside them. Operands are small integers and factors powers of two, so that every
order of sums gives the same bits.
"""

from __future__ import annotations

import random

from drawn_calls import Drawn
from held_tensors import Held
from random_depths import depths
from random_groups import groups_of
from random_products import product
from random_scaled import quantised, scaled, weights
from random_stacks import stacks

SIDES = (weights, quantised, depths)
FAMILIES = (*[product] * 5, *[groups_of] * 3, *[scaled] * 2, *SIDES, *[stacks] * 2)


def random_call(seed: int) -> Drawn:
    """The call of a seed."""
    draw = random.Random(f"call {seed}")
    return draw.choice(FAMILIES)(draw, Held(seed))
