"""setmaxnreg and griddepcontrol (PTX ISA §9.7.19.5, §9.7.13.13)."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator import Deadlock, Trap, launch


def run(body: str, *, block=384, directive="", **options):
    text = f""".version 8.8\n.target sm_100a\n.address_size 64
    .visible .entry k() .reqntid {block} {directive} {{
      .reg .b32 %r<9>; .reg .pred %p<4>; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 7;
      setp.eq.u32 %p0, %r1, 0; {body} ret; }}"""
    return launch(text, "k", grid=1, block=block, **options)


def trap_of(body: str, **options) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, **options)
    return caught.value


SPLIT = """@%p0 bra PRODUCER; setmaxnreg.inc.sync.aligned.u32 {inc}; bra DONE;
  PRODUCER: setmaxnreg.dec.sync.aligned.u32 {dec}; DONE:"""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("block", "dec", "inc"), [(384, 40, 232), (512, 32, 160), (256, 24, 255 // 8 * 8)]
)
def test_consumers_get_what_the_producer_gives_up(block, dec, inc, seed):
    """384 threads start with 168 registers each: 40 + 232 + 232 = 3 * 168"""
    run(SPLIT.format(dec=dec, inc=inc), block=block, seed=seed)


def test_more_than_was_given_up_is_waited_for_forever():
    trap = trap_of(SPLIT.format(dec=48, inc=232))
    assert isinstance(trap, Deadlock)
    assert "waits for 2048 registers" in str(trap)


def test_maxnreg_says_what_a_thread_starts_with():
    """§11.4.2 .maxnreg"""
    run(SPLIT.format(dec=24, inc=40), directive=".maxnreg 32", block=256)
    trap = trap_of(SPLIT.format(dec=24, inc=48), directive=".maxnreg 32", block=256)
    assert isinstance(trap, Deadlock)


def test_a_compiler_may_give_fewer_registers_than_there_are():
    """256 threads could have 248 each; without .maxnreg the compiler chooses"""
    run(SPLIT.format(dec=24, inc=240), block=256)
    trap = trap_of(SPLIT.format(dec=24, inc=240), block=256, directive=".maxnreg 248")
    assert trap.message == "setmaxnreg.inc to 240 registers a thread, which has 248"


@pytest.mark.parametrize("seed", range(4))
def test_a_request_for_more_gives_nothing_up(seed):
    """`.inc` to 40 is right where threads start with 40 at most: then nobody gives up what the
    other warpgroups ask for."""
    trap = trap_of(SPLIT.format(dec=40, inc=232).replace(".dec", ".inc"), seed=seed)
    assert isinstance(trap, Deadlock)
    assert "waits for 6144 registers, 0 are given up" in str(trap)


def test_ctas_that_share_a_multiprocessor_share_its_registers():
    """§11.4.5 .minnctapersm: 256 threads start with 128, of which 104 can be given up; where more
    threads are asked for than fit, it says nothing."""
    two = ".minnctapersm 2"
    run(SPLIT.format(dec=24, inc=232), block=256, directive=two)
    assert isinstance(trap_of(SPLIT.format(dec=24, inc=240), block=256, directive=two), Deadlock)
    run(SPLIT.format(dec=40, inc=232), directive=".minnctapersm 16")


@pytest.mark.parametrize(
    ("body", "category", "message"),
    [
        ("setmaxnreg.dec.sync.aligned.u32 200;", "protocol",
         "setmaxnreg.dec to 200 registers a thread, which has 168"),
        ("setmaxnreg.dec.sync.aligned.u32 72; setmaxnreg.inc.sync.aligned.u32 64;", "protocol",
         "setmaxnreg.inc to 64 registers a thread, which has 72"),
        ("setmaxnreg.dec.sync.aligned.u32 100;", "operand",
         "setmaxnreg takes 24..256 in steps of 8, got 100"),
        ("setp.lt.u32 %p1, %r0, 8; @%p1 setmaxnreg.dec.sync.aligned.u32 64;", "convergence",
         "the guard of this .aligned instruction leaves out lanes 8-31"),
    ],
)  # fmt: skip
def test_misuse_is_refused(body, category, message):
    trap = trap_of(body)
    assert (trap.category, trap.message) == (category, message)


def test_griddepcontrol_has_nothing_to_wait_for():
    report = run("griddepcontrol.wait; griddepcontrol.launch_dependents;", block=32)
    assert report.instructions["griddepcontrol.wait"] == 1


def test_the_hints_of_a_published_kernel_have_no_effect():
    """§9.7.19.2 nanosleep, §9.7.13.4 fences"""
    fences = " ".join(f"fence.{order}.{scope};" for order in ("sc", "acq_rel", "acquire", "release")
                      for scope in ("cta", "cluster", "gpu", "sys"))  # fmt: skip
    run(fences + "nanosleep.u32 20; nanosleep.u32 %r0;", block=64)


DIFFERENT = """setp.lt.u32 %p1, %r0, 96; @%p1 setmaxnreg.dec.sync.aligned.u32 32;
  @!%p1 setmaxnreg.dec.sync.aligned.u32 24;"""
ALONE = "setp.lt.u32 %p1, %r0, 32; @%p1 setmaxnreg.dec.sync.aligned.u32 64;"
RULE = "all warps of a warpgroup must execute the same setmaxnreg (PTX ISA section 9.7.19.5), got "
GOT = {
    DIFFERENT: "warp 0: [32], warp 1: [32], warp 2: [32], warp 3: [24]",
    ALONE: "warp 0: [64], warp 1: [], warp 2: [], warp 3: []",
}


@pytest.mark.parametrize("body", GOT)
def test_warps_of_a_group_that_do_not_ask_for_the_same_are_an_error(body):
    with pytest.raises(Trap) as caught:
        run(body, block=128)
    assert caught.value.category == "convergence"
    assert caught.value.message.startswith(f"{RULE}{GOT[body]}; with check=shipped")


@pytest.mark.parametrize("check", ["shipped", "fast", "off"])
@pytest.mark.parametrize("body", GOT)
def test_where_libraries_are_run_it_is_a_warning(body, check):
    """CUTLASS's attention for sm_100a: an idle warp takes fewer than its warpgroup."""
    (warning,) = run(body, block=128, check=check).warnings
    assert warning.category == "register-counts"
    assert warning.message.endswith(f"{RULE}{GOT[body]}")
