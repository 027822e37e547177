"""Bugs in kernels written by hand: what no preset has (39, and 41 onward)."""

from .edits import chain, delete, insert_after, insert_before, replace
from .entry import Bug
from .written import BLOCK_SCALED, CP_ASYNC, REVERSE, RING, WATCHER, WGMMA

ZEROS = "\n".join(
    f"    st.shared.v4.b32 [tile+{at}], {{%idesc, %idesc, %idesc, %idesc}};"
    for at in range(5632, 5888, 16)
)
PADDING = f"""mov.b32 %idesc, 0;
{ZEROS}
    mov.b32 %idesc, 255;
    st.shared.b8 [tile+4609], %idesc;
    fence.proxy.async.shared::cta;"""
"""Behind the end of K: an operand B of zeros, and NaN as the second factor of A's row 0."""
TAIL = """add.u64 %b, %b, 96;
    mov.b32 %idesc, 0x28820010;
    setp.eq.u32 %adds, 0, 0;
    tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale
        [%tmem], %a, %b, %idesc, [%tmem+16], [%tmem+20], %adds;"""
MULTIPLY = r"tcgen05\.mma"
INIT = r"mbarrier\.init"
POLL = "{ .reg .pred %p; mbarrier.try_wait.parity.shared::cta.b64 %p, [%first+8], 0; }"

BUGS = (
    Bug(
        "39a",
        "the scale factors lie in another column than the mma is told",
        BLOCK_SCALED,
        replace(r"\[%tmem\+20\], %adds", "[%tmem+24], %adds"),
        "uninitialised-read",
        says=r"scale factors of B: .* never written",
    ),
    Bug(
        "39b",
        "the scale factors are not the same in all four quarters",
        BLOCK_SCALED,
        replace(r"32x128b\.warpx4 \[%tmem\+16\]", "64x128b.warpx2::01_23 [%tmem+16]"),
        "tmem",
        says=r"same in all four 32-lane quarters",
    ),
    Bug(
        "39c",
        "the type of the scale factors is that of another kind",
        BLOCK_SCALED,
        replace("0x08820000", "0x08020000"),
        "descriptor",
        says=r"scale type",
    ),
    Bug(
        "39d",
        "a part of the scale factors is not loaded",
        BLOCK_SCALED,
        replace(", 5632", ", 4864"),
        "uninitialised-read",
        says=r"scale factors of A: byte|tcgen05\.cp reads",
    ),
    Bug(
        "39e",
        "a scale factor behind the end of K is NaN, where the operand is zero",
        BLOCK_SCALED,
        chain(insert_before(r"mov\.u32 %tile, tile", PADDING), insert_after(MULTIPLY, TAIL)),
        "nan-scale",
        warns=True,
        says="where an operand has only zeros",
    ),
    Bug(
        "41a",
        "no bar.sync between the stores and the loads of other warps",
        REVERSE,
        delete(r"bar\.sync"),
        "uninitialised-read or race",
    ),
    Bug(
        "41b",
        "bar.sync counts fewer threads than come",
        REVERSE,
        replace(r"bar\.sync 0;", "bar.sync 0, 96;"),
        "uninitialised-read or race",
    ),
    Bug(
        "41c",
        "bar.sync counts more threads than come",
        REVERSE,
        replace(r"bar\.sync 0;", "bar.sync 0, 160;"),
        "deadlock",
        says=r"barrier 0 with 128 of 160 threads arrived",
    ),
    Bug(
        "43a",
        "no cp.async.wait_group before the bytes are read",
        CP_ASYNC,
        delete(r"cp\.async\.wait_group"),
        "uninitialised-read or race",
    ),
    Bug(
        "43b",
        "cp.async.wait_group leaves one group too many under way",
        CP_ASYNC,
        replace(r"wait_group 1", "wait_group 2"),
        "uninitialised-read or race",
    ),
    Bug(
        "43c",
        "no barrier between the wait for a copy and other threads' loads",
        CP_ASYNC,
        delete(r"bar\.sync 0"),
        "uninitialised-read or race",
    ),
    Bug(
        "44a",
        "the results of wgmma are read without wgmma.wait_group",
        WGMMA,
        delete(r"wgmma\.wait_group"),
        "missing-wait",
        says=r"before wgmma\.wait_group covers its group",
    ),
    Bug(
        "44b",
        "the registers of wgmma are written without wgmma.fence",
        WGMMA,
        delete(r"wgmma\.fence"),
        "missing-fence",
        says=r"written after the last wgmma\.fence",
    ),
    Bug(
        "44c",
        "wgmma is not committed to a group",
        WGMMA,
        delete(r"wgmma\.commit_group"),
        "missing-wait",
        says=r"before wgmma\.wait_group covers its group",
    ),
    Bug(
        "45a",
        "a barrier is used before its initialisation",
        RING,
        delete(INIT, 0),
        "barrier-protocol",
        says=r"mbarrier\.init has not been executed there",
    ),
    Bug(
        "45b",
        "a barrier is initialised twice",
        RING,
        insert_after(INIT, "mbarrier.init.shared::cta.b64 [%first], 1;", 0),
        "barrier-protocol",
        says=r"mbarrier\.init of the live mbarrier",
    ),
    Bug(
        "45c",
        "a live barrier's place is used for data",
        RING,
        delete(r"mbarrier\.inval"),
        "barrier-protocol",
        says=r"touches a live mbarrier",
    ),
    Bug(
        "45d",
        "more threads arrive than the barrier counts",
        RING,
        replace(r"\[%empty\], 32", "[%empty], 31"),
        "barrier-protocol",
        says=r"arrival of 32 exceeds|waited for by no thread",
    ),
    Bug(
        "45e",
        "a waiter comes back two phases later",
        RING,
        chain(insert_before(r"@%copies bra finish", POLL), insert_after(r"bar\.sync 0", POLL, -1)),
        "barrier-protocol",
        says=r"the waiter lags 2 phases",
    ),
    Bug(
        "45f",
        "a ring's slot is filled again before its readers have released it",
        RING,
        delete(r"@!%done bra empty"),
        "race or barrier-protocol",
    ),
    Bug(
        "45g",
        "no barrier between the initialisation and other warps",
        RING,
        delete(r"bar\.sync 0", 0),
        "missing-fence or barrier-protocol",
    ),
    Bug(
        "45h",
        "a warp that only waits may fall two phases behind",
        WATCHER,
        chain(
            delete(r"mbarrier\.arrive\.relaxed"),
            replace(r"\[empty\], 64", "[empty], 32"),
        ),
        "barrier-protocol or deadlock",
        says=r"behind the wait of warp 2|the waiter lags|warp 2 waits",
    ),
)
