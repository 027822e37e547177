"""Fences, hints and controls that must be accepted, and what they check (PTX ISA §9.7.13.4)."""

from __future__ import annotations

import numpy as np
import pytest

HARMLESS = [
    "membar.cta;",
    "membar.gl;",
    "fence.acq_rel.gpu;",
    "fence.sc.cta;",
    "fence.acquire.sync_restrict::shared::cluster.cluster;",
    "fence.proxy.async;",
    "fence.proxy.async.shared::cta;",
    "fence.proxy.async.global;",
    "fence.proxy.alias;",
    "fence.mbarrier_init.release.cluster;",
    "fence.proxy.tensormap::generic.release.gpu;",
    "prefetch.global.L2 [%base];",
    "createpolicy.fractional.L2::evict_last.b64 %w0, 0f3F800000;",
    "nanosleep.u32 20;",
    "pmevent 3;",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_an_instruction_without_effect_on_values(execute, text):
    a = np.arange(32, dtype=np.uint32)
    assert execute(f"mov.b32 %d, %a; {text}", a, out=np.uint32).tolist() == a.tolist()


@pytest.mark.parametrize(
    "text, category",
    [
        ("fence.acq_rel;", "unmodelled"),
        ("fence.sideways.gpu;", "unmodelled"),
        ("membar.cluster;", "unmodelled"),
        ("fence.proxy.async.local;", "unmodelled"),
    ],
)
def test_forms_that_do_not_exist_are_refused(trap_of, text, category):
    assert trap_of(text).category == category


@pytest.mark.parametrize(
    "hints",
    [
        "ld.relaxed.gpu.global.b32 %d, [%at];",
        "ld.acquire.sys.global.u32 %d, [%at];",
        "ld.volatile.global.u32 %d, [%at];",
        "ld.global.nc.L1::no_allocate.L2::128B.b32 %d, [%at];",
        "ld.global.L1::evict_last.L2::cache_hint.b32 %d, [%at], %w0;",
        "ld.weak.global.ca.b32 %d, [%at];",
        "ldu.global.u32 %d, [%at];",
    ],
)
def test_orders_and_cache_hints_do_not_change_a_load(execute, hints):
    a = np.arange(32, dtype=np.uint32) * 3
    body = f"ld.param.u64 %base, [pa]; mad.wide.u32 %at, %lane, 4, %base; {hints}"
    assert execute(body, a, out=np.uint32).tolist() == a.tolist()
