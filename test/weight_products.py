"""Products of narrow weights, as the tests of mma.sync, of wgmma and of tcgen05.mma draw them."""

from tilewright.compiler.spec import MatmulSpec

TYPES = ("s8", "e4m3", "e5m2", "s4", "u4")


def spec_of(m, n, k, weights="s4", group=32, scales="bf16", **more):
    groups = {"group_size": group, "scale_dtype": scales} if group else {}
    types = more.pop("a", "bf16"), weights, more.pop("c", "f32")
    return MatmulSpec(m, n, k, *types, **groups, **more)


def turned_tiling(spec, tile, mmas):
    """A and B exchanged, by the MMA that the spec's groups need: of all of K, or of several."""
    mma = mmas[spec.group_size not in (0, spec.k)]
    return f"tiling{{tile={tile} mma={mma} swap=true}}"
