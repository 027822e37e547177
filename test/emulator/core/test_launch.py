"""The launch itself: parameters, shapes, refusals, reports, unmodelled instructions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tilewright.runtime.emulator import DeviceError, LaunchError, TensorMap, Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
EMPTY = HEADER + ".visible .entry k() {{ {body} ret; }}"
PARAMS = (
    HEADER
    + """.visible .entry k(.param .u64 p, .param .u32 n, .param .f32 f,
  .param .align 64 .b8 m[128], .param .s8 s) { ret; }"""
)


def refusal(text: str, **options) -> str:
    options = dict(grid=1, block=32) | options
    with pytest.raises(LaunchError) as caught:
        launch(text, "k", **options)
    assert isinstance(caught.value, DeviceError)
    return str(caught.value)


def tensor_map() -> TensorMap:
    return TensorMap(np.zeros((16, 16), np.float32), "f32", [16, 16], [64], [16, 16])


GOOD = [np.zeros(4, np.float32), 3, 1.5, bytes(128), -1]


def test_parameters_of_the_right_kind_are_accepted():
    launch(PARAMS, "k", grid=1, block=32, params=GOOD)
    launch(
        PARAMS,
        "k",
        grid=1,
        block=32,
        params=[0x1234, np.uint32(7), np.float32(2), tensor_map(), np.int8(-128)],
    )


@pytest.mark.parametrize(
    "position, value, message",
    [
        (0, 1.5, "parameter 0 (p): is of type .u64, got the float 1.5"),
        (0, np.array([None]), "parameter 0 (p): arrays of Python objects have no bytes to pass"),
        (
            1,
            np.zeros(3),
            "parameter 1 (n): an array is passed by its 64-bit address, got a parameter of"
            " type .u32",
        ),
        (
            1,
            1 << 32,
            "parameter 1 (n): must be in -2147483648..4294967295 for .u32, got 4294967296",
        ),
        (
            1,
            "four",
            "parameter 1 (n): must be a numpy array, a TensorMap, a TensorMapArray, a PointerArray,"
            " a number, bytes or a dict of a struct's fields, got str",
        ),
        (
            1,
            tensor_map(),
            "parameter 1 (n): a TensorMap needs `.param .align 64 .b8 p[128]`, got 4 bytes"
            " aligned to 4",
        ),
        (3, bytes(64), "parameter 3 (m): must be 128 bytes, got 64"),
        (3, 5, "parameter 3 (m): a number cannot fill b8 with dims [128]; pass bytes"),
        (4, 128, "parameter 4 (s): must be in -128..127 for .s8, got 128"),
    ],
)
def test_a_wrong_parameter_is_named(position, value, message):
    params = list(GOOD)
    params[position] = value
    assert refusal(PARAMS, params=params) == message


def test_a_wrong_number_of_parameters_lists_them():
    assert refusal(PARAMS, params=[1]) == ("kernel k: it has 5 parameters (p, n, f, m, s), got 1")


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(grid=0), "kernel k: grid x must be 1..2147483647, got 0"),
        (dict(grid=(1, 70000)), "kernel k: grid y must be 1..65535, got 70000"),
        (dict(block=(64, 32)), "kernel k: a block has at most 1024 threads, got 2048"),
        (dict(block=(1, 1, 65)), "kernel k: block z must be 1..64, got 65"),
        (dict(block=1.5), "block: must be one to three integers, got 1.5"),
        (
            dict(grid=3, cluster=2),
            "kernel k: grid (3, 1, 1) must be a multiple of cluster (2, 1, 1)",
        ),
        (dict(grid=32, cluster=32), "kernel k: a cluster has 1..16 CTAs, got (32, 1, 1)"),
        (dict(shared_bytes=-1), "kernel k: shared_bytes must be an integer >= 0, got -1"),
        (
            dict(shared_bytes=232449),
            "kernel k: a CTA has at most 232448 bytes of shared memory, got 0"
            " static and 232449 dynamic",
        ),
    ],
)
def test_launch_limits(options, message):
    options = dict(grid=1, block=32) | options
    with pytest.raises(LaunchError) as caught:
        launch(EMPTY.format(body=""), "k", **options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "directive, options, message",
    [
        (
            ".reqntid 64",
            dict(block=32),
            "kernel k: block must be (64, 1, 1) (.reqntid), got (32, 1, 1)",
        ),
        (
            ".maxntid 16, 2",
            dict(block=33),
            "kernel k: a block has at most 32 threads (.maxntid), got 33",
        ),
        (
            ".reqnctapercluster 2",
            dict(grid=4, cluster=4),
            "kernel k: cluster must be (2, 1, 1) (.reqnctapercluster), got (4, 1, 1)",
        ),
    ],
)
def test_the_kernel_s_own_limits(directive, options, message):
    """PTX ISA §11.4 performance-tuning directives, §11.7 cluster directives"""
    text = HEADER + f".entry k() {directive} {{ ret; }}"
    assert refusal(text, **options) == message


def test_the_largest_shared_memory_fits():
    launch(EMPTY.format(body=""), "k", grid=1, block=32, shared_bytes=232448)


# -- what is not modelled ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, message",
    [
        (
            "frobnicate.u32 %r1, %r2;",
            "instruction frobnicate.u32 is not modelled (PTX ISA section 9.7 has none of this"
            " name)",
        ),
        (
            "mbarrier.shrink.b64 [%rd1];",
            "instruction mbarrier.shrink.b64 is not modelled (PTX ISA section 9.7.13.15)",
        ),
        ("add.whirl.s32 %r1, %r1, %r1;", "modifier .whirl (PTX ISA section 9.7.1.1)"),
        ("add.b77 %r1, %r1, %r1;", "type .b77 (PTX ISA section 9.7.1.1)"),
        ("ld.global.v3.u32 %r1, [%rd1];", "modifier .v3 (PTX ISA section 9.7.9.8)"),
        ("add.s32 %r1, %r1;", "2 operands (PTX ISA section 9.7.1.1)"),
    ],
)
def test_what_is_not_modelled_stops_before_the_kernel_starts(body, message):
    text = EMPTY.format(body=".reg .b32 %r<4>; .reg .b64 %rd<4>;\n" + body)
    with pytest.raises(Trap) as caught:
        launch(text, "k", grid=1, block=32)
    assert (caught.value.category, caught.value.message) == ("unmodelled", message)
    assert (caught.value.line, caught.value.text) == (5, body.rstrip(";"))
    assert (
        str(caught.value) == f"ptx:5: error: kernel k: `{body.rstrip(';')}`: unmodelled: {message}"
    )


@pytest.mark.parametrize(
    "body, message",
    [
        (
            "add.s32 %r1, %r1, %rd1;",
            "operand %rd1 must have 32 bits here, got a register of 64 bits",
        ),
        ("mov.b16 %r1, 3;", "operand %r1 must have 16 bits here, got a register of 32 bits"),
        ("add.s32 %r1, %r1, %q1;", "`%q1` is neither a register nor a variable"),
        ("bra NOWHERE;", "label NOWHERE is not declared in this function"),
    ],
)
def test_operands_that_do_not_fit_are_refused(body, message):
    text = EMPTY.format(body=".reg .b32 %r<4>; .reg .b64 %rd<4>;\n" + body)
    with pytest.raises(Trap) as caught:
        launch(text, "k", grid=1, block=32)
    assert caught.value.message == message


# -- the report ---------------------------------------------------------------------------------


def test_the_report_counts_instructions_and_bytes():
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %rd<4>;
      .reg .pred %p; .shared .b32 s[8];
      ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 8;
      mad.wide.u32 %rd1, %r0, 4, %rd0; @%p st.global.u32 [%rd1], %r0;
      mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1; @%p st.shared.u32 [%r1], %r0; ret; }"""
    )
    report = launch(text, "k", grid=3, block=32, params=[np.zeros(8, np.uint32)])
    assert report.instructions["st.global.u32"] == 3
    assert report.instructions["mad.wide.u32"] == 3
    assert report.memory_bytes["global", "write"] == 3 * 8 * 4
    assert report.memory_bytes["shared", "write"] == 3 * 8 * 4
    assert report.steps == 27
    summary = json.loads(json.dumps(report.as_dict()))
    assert summary["memory_bytes"]["param"]["read"] == 3 * 32 * 8
    assert summary["barrier_waits"] == {"asked": 0, "suspended": 0}
    assert "st.global.u32" in str(report) and "27 warp instructions" in str(report)


def test_more_ctas_than_can_be_resident_all_run():
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %rd<4>;
      ld.param.u64 %rd0, [out]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %rd1, %r0, 4, %rd0;
      st.global.u32 [%rd1], %r0; ret; }"""
    )
    for resident in (1, 3, 64):
        out = np.full(50, 99, np.uint32)
        launch(text, "k", grid=50, block=64, params=[out], resident=resident)
        assert out.tolist() == list(range(50))
