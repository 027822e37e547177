"""What a search remembers from one problem to the next is what it would find again."""

import pytest

from tilewright.compiler.schedule.estimates.epilogue_costs import epilogue_cycles
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.search import kind_cache, tile_shapes
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.schedule.search.stores import Stores
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import TARGETS

SCALES = {"a_dtype": "e4m3", "b_dtype": "e4m3", "a_scales": "1x128", "b_scales": "1x128"}
RESIDUAL = {"beside": ("bf16",), "epilogue_instructions": 1}
OF_ROWS = {"b_scales": "128x128", "c_dtype": "e4m3", "beside_rows": ("f32",)}
# Two sizes each, of another kind but for the first.
OTHERS = {
    "the same kind": ((4096, 4096, 4096), (1000, 2048, 1000), {}),
    "threads copy rows": ((2048, 4096, 4098), (4095, 4096, 4095), {"a_major": "m"}),
    "rows of groups": ((2000, 4098, 4096), (240, 4098, 4096), {"groups": 8}),
    "scales that threads copy": ((4096, 2112, 7168), (4095, 2112, 7168), SCALES),
    "steps shorter than scales": ((512, 256, 32), (4096, 4096, 4096), SCALES),
    "fewer steps than stages": ((4096, 7168, 4096), (4096, 7168, 160), SCALES | OF_ROWS),
    "threads store C": ((1000, 1000, 512), (1000, 1001, 512), {}),
    "what is beside C lies apart": ((1000, 1008, 512), (1000, 1016, 512), {"beside": ("e4m3",)}),
    "slots for a residual": ((1024, 2048, 4096), (1024, 2048, 4160), RESIDUAL),
    "odd columns of vectors": ((61, 4096, 512), (62, 4096, 512), {"beside_columns": ("bf16",)}),
}


def choose(sizes, more, chip):
    spec = MatmulSpec(*sizes, **more)
    return choose_schedule(spec, target_for(spec, chip))


@pytest.fixture(autouse=True)
def forgotten():
    kind_cache.forget()
    yield
    kind_cache.forget()


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_remembered_is_what_would_be_found(name, chip, monkeypatch):
    """In both orders of two sizes: each answer is found anew, and compared."""

    def of(self, what, asked, find, *how):
        known = self.known(what)
        assert known.setdefault(asked, find(*how)) == find(*how)
        return known[asked]

    monkeypatch.setattr(kind_cache.KindCache, "of", of)
    one, other, more = OTHERS[name]
    for sizes in (one, other, one):
        choose(sizes, more, chip)


def test_another_size_of_a_kind_asks_for_little(monkeypatch):
    asked = []
    find = tile_shapes.least_epilogue_cycles
    monkeypatch.setattr(
        tile_shapes, "least_epilogue_cycles", lambda *how: asked.append(1) or find(*how)
    )
    looked = []
    for sizes in ((5000, 2048, 2048), (3000, 3072, 1024), (3100, 3000, 1500)):
        choose(sizes, RESIDUAL, "sm_90a")
        looked.append(len(asked))
    assert looked[0] > 20 and looked[2] - looked[1] < looked[1] / 10


def test_a_residual_takes_as_long_in_clusters_whoever_was_asked_before():
    """One that comes in slots of A and B is sooner there: of CTAs alone."""
    target = TARGETS["sm_90a"]
    problem = Problem.of(MatmulSpec(1024, 2048, 4096, **RESIDUAL), target)
    alone = Schedule((128, 128, 64), stages=6)
    both = alone, alone.but(cluster=(2, 1))

    def asked(*orders):
        stores = Stores(problem, target, epilogue_cycles, kind_cache.KindCache(problem, target))
        return [stores.of(order, 1) for order in orders]

    first, second = asked(*both)
    kind_cache.forget()
    assert [second] == asked(both[1]) and first != second
