"""Any legal subset of the passes, with any options, is a correct kernel; others say why not.

A draw picks a tile, passes after `tiling` in pipeline order and their options. `refusal` says from
the rules alone whether the compiler must refuse it, and with which words.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, event, given, seed, settings
from hypothesis import strategies as st
from shapes import within

from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

ELEMENT_BYTES = {"bf16": 2, "f16": 2, "f32": 4}
SHARED_BYTES, RESERVED_BYTES = 232_448, 1024
SPANS = (16, 32, 64, 128)


@dataclass(frozen=True)
class Case:
    """A spec, a tile, and the options of every pass that runs, as text, in pipeline order."""

    spec: MatmulSpec
    tile: tuple[int, int, int]
    passes: dict[str, dict[str, str]] = field(hash=False)
    seed: int = 0

    @property
    def pipeline(self):
        tiling = "tiling{tile=" + "x".join(map(str, self.tile)) + "}"
        return ",".join([tiling, *(_call(*item) for item in self.passes.items())])

    def option(self, name, option):
        """The option's text, or None when the pass is not run or takes its default."""
        return self.passes.get(name, {}).get(option)

    def contiguous_bytes(self, operand):
        """Bytes of one row of A, B or C as it is stored, and how many rows there are."""
        spec = self.spec
        if operand == "c":
            return spec.n * ELEMENT_BYTES[spec.c_dtype], spec.m
        mn, major = (spec.m, spec.a_major) if operand == "a" else (spec.n, spec.b_major)
        return (spec.k * 2, mn) if major == "k" else (mn * 2, spec.k)

    def by_tma(self, operand):
        row_bytes, rows = self.contiguous_bytes(operand)
        return rows == 1 or row_bytes % 16 == 0

    @property
    def by_no_pipe(self):
        """Whether operands come through no pipe."""
        return "tma-insertion" not in self.passes

    @property
    def staged(self):
        narrow = self.tile[0] % 128 != 0 and piece_bytes(self) < 32
        return "epilogue-staging" in self.passes and self.by_tma("c") and not narrow


def _call(name, options):
    text = " ".join(f"{key}={value}" for key, value in options.items())
    return f"{name}{{{text}}}" if text else name


def no_pair(case):
    """Why the tile allows no 2-CTA MMA, or None."""
    m, n, _ = case.tile
    if m not in (64, 128, 256):
        return f"a pair needs 64, 128 or 256 rows a CTA, got {m}"
    if m == 64 and case.staged:
        return "a staged epilogue of a pair needs 128 rows a CTA, got 64"
    asked = case.option("clustering", "pair") == "true"
    step = 16 if asked and m % 128 == 0 and case.spec.b_major == "k" else 32
    if n % step:
        return f"a pair needs N a multiple of {step}, got {n}"
    return None


def cluster_shape(case):
    """CTAs along M and N that `clustering` makes."""
    shape, pair = case.option("clustering", "shape"), case.option("clustering", "pair")
    if "clustering" not in case.passes or (case.by_no_pipe and shape is None):
        return 1, 1
    if shape:
        return tuple(map(int, shape.split("x")))
    return (1, 1) if pair == "false" or no_pair(case) else (2, 1)


def has_pair(case):
    wanted = "clustering" in case.passes and case.option("clustering", "pair") != "false"
    even = cluster_shape(case)[0] % 2 == 0
    return wanted and even and not case.by_no_pipe and no_pair(case) is None


def cluster_refusal(case):
    shape, pair = case.option("clustering", "shape"), case.option("clustering", "pair")
    if case.by_no_pipe and (shape or pair == "true"):
        return "an operand comes through no pipe, and only its own CTA waits for it"
    if pair != "true" or case.by_no_pipe:
        return None
    if shape and cluster_shape(case)[0] % 2 and no_pair(case) is None:
        return f"2-CTA MMAs need an even cluster M, got {shape}"
    return no_pair(case)


def slot_bytes(case):
    """Shared memory of one slot: the tile of A and the CTA's part of B, each on 1024 bytes."""
    m, n, k = case.tile
    rows_of_b = n // 2 if has_pair(case) else n
    return sum(-(-rows * k * 2 // 1024) * 1024 for rows in (m, rows_of_b))


def piece_bytes(case):
    """Bytes of one row of a staged piece: as asked for, or the widest span that fits."""
    element, columns = ELEMENT_BYTES[case.spec.c_dtype], case.option("epilogue-staging", "columns")
    if columns:
        return int(columns) * element
    return max(span for span in SPANS if case.tile[1] * element % span == 0)


def staging_bytes(case):
    if not case.staged:
        return 0
    buffer = -(-case.tile[0] * piece_bytes(case) // 1024) * 1024
    return int(case.option("epilogue-staging", "buffers") or 2) * buffer


def staging_refusal(case):
    if not case.staged or case.option("epilogue-staging", "write") != "matrices":
        return None
    if case.spec.c_dtype == "f32" or piece_bytes(case) < 32:
        return "write=matrices needs 16-bit elements and 16, 32 or 64 columns"
    return None


def stages_refusal(case):
    stages = case.option("pipelining", "stages")
    if stages is None or "tma-insertion" not in case.passes:
        return None
    free, slot = SHARED_BYTES - RESERVED_BYTES - staging_bytes(case), slot_bytes(case)
    if int(stages) * slot <= free:
        return None
    return f"{stages} stages of {slot} bytes are {int(stages) * slot} bytes, over the {free}"


def ring_refusal(case):
    if "tma-insertion" in case.passes:
        return None
    if {"pipelining", "warp-specialization"} & set(case.passes):
        return "operands must come through a pipe; run tma-insertion first"
    return None


def scheduler_refusal(case):
    clc = case.option("persistence", "scheduler") == "clc"
    if not clc and case.option("persistence", "depth"):
        return "depth is for scheduler=clc, got scheduler=static"
    if clc and case.option("persistence", "ctas"):
        return "ctas is for scheduler=static, got scheduler=clc"
    order = case.option("persistence", "order") or "grouped"
    if order != "grouped" and case.option("persistence", "group"):
        return f"group is for order=grouped, got order={order}"
    if clc and "warp-specialization" not in case.passes:
        return "scheduler=clc needs a role that asks for tiles; run warp-specialization first"
    return None


RULES = (staging_refusal, cluster_refusal, stages_refusal, ring_refusal, scheduler_refusal)


def refusal(case):
    """Words of the message that the first pass to refuse the case must give, or None."""
    return next(filter(None, (rule(case) for rule in RULES)), None)


ANY_EXTENT = st.one_of(st.integers(1, 40), st.integers(41, 264))
EXTENT_FOR_TMA = st.one_of(st.integers(1, 5), st.integers(6, 33)).map(lambda units: 8 * units)
SHAPES = st.one_of(*[st.tuples(*[EXTENT_FOR_TMA] * 3)] * 3, st.tuples(*[ANY_EXTENT] * 3))
SPECS = st.builds(
    lambda shape, operand, c, a_major, b_major: MatmulSpec(
        *shape, operand, operand, c, a_major=a_major, b_major=b_major
    ),
    SHAPES,
    st.sampled_from(["bf16", "f16"]),
    st.sampled_from(["bf16", "f16", "f32"]),
    st.sampled_from("km"),
    st.sampled_from("kn"),
)
TILES = st.tuples(
    st.sampled_from([64, 128, 128, 192, 256]),
    st.one_of(st.sampled_from([32, 64, 96, 128, 256]), st.integers(1, 16).map(lambda n: 16 * n)),
    st.sampled_from([16, 32, 48, 64, 64, 128]),
).filter(lambda tile: tile[0] // (128 if tile[0] % 128 == 0 else 64) * tile[1] <= 512)
CLUSTERS = ("1x1", "2x1", "1x2", "2x2", "4x1", "3x1", "2x3")


def some(**options):
    """Options of a pass: each drawn, or left out so that its default holds."""
    return st.fixed_dictionaries({}, optional=options)


RASTER = {
    "order": st.sampled_from(["m", "n", "grouped", "hilbert"]),
    "group": st.integers(1, 4).map(str),
}
COUNTS = {"depth": st.integers(1, 3).map(str), "ctas": st.integers(1, 12).map(str)}
FREE = (some(order=RASTER["order"]), some(group=RASTER["group"]))
STATIC = st.one_of(*(st.builds(dict.__or__, each, some(ctas=COUNTS["ctas"])) for each in FREE))
LAUNCH_CONTROL = st.one_of(
    *(st.builds(dict.__or__, each, some(depth=COUNTS["depth"])) for each in FREE)
).map(lambda options: {"scheduler": "clc", **options})
ANYTHING = some(**RASTER, **COUNTS, scheduler=st.sampled_from(["static", "clc"]))


def staging_options(spec, tile):
    element = ELEMENT_BYTES[spec.c_dtype]
    columns = [span // element for span in SPANS if tile[1] * element % span == 0]
    return some(
        columns=st.sampled_from(columns).map(str),
        buffers=st.integers(1, 3).map(str),
        write=st.sampled_from(["rows", "matrices"]),
    )


@st.composite
def cases(draw):
    spec, tile = draw(SPECS), draw(TILES)
    options = {
        "tma-insertion": some(box=st.sampled_from(["2d", "3d"])),
        "swizzle-selection": st.just({}),
        "epilogue-staging": staging_options(spec, tile),
        "clustering": some(
            shape=st.sampled_from(CLUSTERS), pair=st.sampled_from(["true", "false"])
        ),
        "pipelining": some(stages=st.integers(1, 6).map(str)),
        "warp-specialization": st.just({}),
        "persistence": st.one_of(STATIC, LAUNCH_CONTROL, STATIC, LAUNCH_CONTROL, ANYTHING),
    }
    likely = {name: st.sampled_from([True, True, False]) for name in options}
    likely["tma-insertion"] = st.sampled_from([True, True, True, True, True, False])
    chosen = {name: draw(option) for name, option in options.items() if draw(likely[name])}
    return Case(within(spec, tile), tile, chosen, draw(st.integers(0, 2**16)))


def check(check_matmul, case):
    """The case computes the product, or is refused for the reason that the rules give."""
    reason = refusal(case)
    event("refused" if reason else "run")
    if reason is None:
        check_matmul(case.spec, pipeline=case.pipeline, seed=case.seed)
        return
    with pytest.raises(CompileError) as caught:
        check_matmul(case.spec, pipeline=case.pipeline)
    assert reason in caught.value.message


FIXED = {
    "deadline": None,
    "derandomize": True,
    "phases": [Phase.generate],  # shrinking would run hundreds of kernels
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@settings(max_examples=10, **FIXED)
@given(case=cases())
def test_a_drawn_subset_is_right_or_refused_with_its_reason(check_matmul, case):
    check(check_matmul, case)


@pytest.mark.slow
@pytest.mark.sweep(54)
@pytest.mark.parametrize("block", range(27))
def test_many_drawn_subsets_are_right_or_refused_with_their_reason(check_matmul, block):
    @seed(block)
    @settings(max_examples=6, **FIXED | {"derandomize": False, "database": None})
    @given(case=cases())
    def draw(case):
        check(check_matmul, case)

    draw()
