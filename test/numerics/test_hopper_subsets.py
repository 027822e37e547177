"""Any subset of the passes with any options is right for sm_90a, or is refused in words."""

import re

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from shapes import within

from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

EXTENTS = st.one_of(st.integers(1, 40), st.integers(41, 330), st.sampled_from([256, 512]))
SPECS = st.builds(
    lambda m, n, k, operand, c, a_major, b_major: MatmulSpec(
        m, n, k, operand, operand, c, a_major=a_major, b_major=b_major
    ),
    EXTENTS,
    EXTENTS.map(lambda n: -(-n // 4) * 4),
    EXTENTS.map(lambda k: -(-k // 8) * 8),
    st.sampled_from(["bf16", "f16"]),
    st.sampled_from(["bf16", "f16", "f32"]),
    st.sampled_from("km"),
    st.sampled_from("kn"),
)
TILES = st.tuples(
    st.sampled_from([64, 128, 192, 256]),
    st.integers(1, 32).map(lambda n: 8 * n),
    st.integers(1, 8).map(lambda k: 16 * k),
).filter(lambda tile: tile[0] * tile[1] // 128 <= (128 if tile[0] % 128 else 256))
MOST = (2, 2, 4)
"""Tiles along M, N and K, the last of them ragged: K goes once around a ring of three."""
OPTIONS = {
    "tma-insertion": ["box=2d", "box=3d"],
    "swizzle-selection": ["force=widest"],
    "epilogue-staging": ["buffers=1", "buffers=2", "columns=16", "write=rows"],
    "clustering": ["pair=auto", "shape=2x1", "shape=1x2", "shape=2x2"],
    "pipelining": ["stages=auto", "stages=2", "stages=3"],
    "warp-specialization": [""],
    "persistence": ["ctas=1", "order=n ctas=4", "group=2"],
    "skip-zeros": [""],
}
CALLS = st.tuples(
    *(
        st.sampled_from([None, *(f"{name}{{{option}}}" if option else name for option in options)])
        for name, options in OPTIONS.items()
    )
)
# What a subset or its options can't be, each in the words that say so.
REFUSALS = (
    "run tma-insertion first",
    "an operand comes through no pipe",
    "use a smaller tile",
    "make the tile smaller",
    r"use stages=\d+ or fewer",
    "columns must divide the tile's",
    "run it before pipelining",
    "rows must be a multiple of 8",
    "tile N must be a multiple of 8 for N-major B",
    "must have MMA instructions of zeros alone",
)


@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # shrinking would run hundreds of kernels
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(spec=SPECS, tile=TILES, calls=CALLS, seed=st.integers(0, 2**16))
def test_a_subset_is_right_or_refused(check_matmul, spec, tile, calls, seed):
    tiling = f"tiling{{tile={'x'.join(map(str, tile))}}}"
    pipeline = ",".join([tiling, *filter(None, calls)])
    try:
        check_matmul(within(spec, tile, MOST), target="sm_90a", pipeline=pipeline, seed=seed)
    except CompileError as error:
        assert any(re.search(words, str(error)) for words in REFUSALS), (pipeline, spec, error)


PING_PONG = {
    **{name: OPTIONS[name] for name in ("tma-insertion", "swizzle-selection")},
    "epilogue-staging": ["buffers=1", "buffers=4", "columns=16"],
    "clustering": ["pair=auto", "shape=1x2", "shape=2x2"],
    "pipelining": OPTIONS["pipelining"],
    "warp-specialization": [""],
    "persistence": ["ctas=1", "order=n ctas=4", "order=hilbert ctas=4", "group=2"],
    "ping-pong": [""],
}
PING_PONG_REFUSALS = (
    *REFUSALS,
    "each warpgroup holds a whole tile",
    "two consumers share the staging buffers, got 1; give epilogue-staging buffers=2",
)


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(spec=SPECS, tile=TILES, data=st.data(), seed=st.integers(0, 2**16))
def test_two_consumers_are_right_or_refused(check_matmul, spec, tile, data, seed):
    calls = [f"tiling{{tile={'x'.join(map(str, tile))}}}"]
    for name, options in PING_PONG.items():
        option = data.draw(st.sampled_from(options))
        left_out = name in ("epilogue-staging", "clustering") and data.draw(st.booleans())
        calls += [] if left_out else [f"{name}{{{option}}}"]
    try:
        check_matmul(within(spec, tile, MOST), target="sm_90a", pipeline=",".join(calls), seed=seed)
    except CompileError as error:
        assert any(re.search(words, str(error)) for words in PING_PONG_REFUSALS), (calls, error)
