"""Bugs of launches, registers, global memory and program order (ptx-facts 33 to 38)."""

from .bases import DEPENDENT, LAUNCH_CONTROL, ROLES
from .edits import delete, replace
from .entry import Bug

HOISTED = (r"(\$L\w+:\n[^\n]*try_wait[^\n]*\n[^\n]*\n[^\n]*bra[^\n]*\n)"
           r"((?:[^\n]*\n){4}\tld\.shared\.v2\.b64[^\n]*\n)")  # fmt: skip
"""A wait for a response, and the load of it behind."""

BUGS = (
    Bug(
        "33a",
        "part of a warpgroup changes its registers",
        ROLES,
        replace(
            r"(setp\.gt\.u32\s+(%p\d+), %r1, 127;)",
            r"\1 { .reg .pred %w; setp.gt.u32 %w, %r1, 31;"
            r" @%w bra OVER; setmaxnreg.dec.sync.aligned.u32 64; OVER: }",
            0,
        ),
        "convergence",
        says=r"must execute the same setmaxnreg \(PTX ISA section 9.7.19.5\), got warp 0: \[64\]",
    ),
    Bug(
        "33b",
        "warps ask for more registers than others have given up",
        ROLES,
        replace(r"(ld\.param\.b64.*)", r"setmaxnreg.inc.sync.aligned.u32 256; \1", 0),
        "deadlock",
        says=r"waits for 256 registers, 0 are given up",
    ),
    Bug(
        "34a",
        "another cancellation is requested after one has failed",
        LAUNCH_CONTROL,
        replace(
            r"@%p\d+ (bra\s+\$L\w+;\n[^\n]*\n\tbar\.warp\.sync \t-1;\n\$L\w+:\n"
            r"\ttcgen05\.fence::before)",
            r"\1",
        ),
        "protocol",
        says=r"has seen a request fail",
    ),
    Bug(
        "34b",
        "a response is overwritten without a proxy fence by its readers",
        LAUNCH_CONTROL,
        delete(r"fence\.proxy\.async\.shared::cta", 1),
        "proxy-fence",
        says=r"a new response would overwrite",
        seeds=2,
    ),
    Bug(
        "34c",
        "the CTA of a request that failed is asked for",
        LAUNCH_CONTROL,
        replace(
            r"@%p\d+ bra[^\n]*\n(\tadd\.s32[^\n]*\n\tsetp\.eq[^\n]*\n\tselp[^\n]*\n"
            r"\tselp[^\n]*\n\txor[^\n]*\n\t\{\n[^\n]*clc_handle)",
            r"\1",
        ),
        "deadlock",
        says=r"every thread waits",
    ),
    Bug(
        "35a",
        "operands are read before griddepcontrol.wait",
        DEPENDENT,
        delete(r"griddepcontrol\.wait"),
        "dependent-launch",
        says=r"before griddepcontrol\.wait",
    ),
    Bug(
        "35b",
        "the epilogue's warps alone execute griddepcontrol.wait",
        DEPENDENT,
        replace(
            r"griddepcontrol\.wait;",
            "{ .reg .pred %first; .reg .b32 %own; mov.u32 %own, %tid.x;"
            " setp.lt.u32 %first, %own, 128; @%first griddepcontrol.wait; }",
        ),
        "dependent-launch",
        says=r"griddepcontrol\.wait",
    ),
    Bug(
        "36",
        "a 32-byte store to an address that is a multiple of 16",
        ROLES,
        replace(r"st\.global\.v4\.b32 (.*)\{(.*)\};", r"st.global.v8.b32 \1{\2, \2};"),
        "misaligned",
        says=r"aligned to 32 bytes, got remainder 16",
    ),
    Bug(
        "37",
        "a load is hoisted over the wait for its bytes",
        LAUNCH_CONTROL,
        replace(HOISTED, r"\2\1"),
        "uninitialised-read or race",
    ),
    Bug(
        "38a",
        "the epilogue stores rows outside the matrix",
        ROLES,
        replace(r"(setp\.gt\.u32\s+%p\d+, %r\d+), 135;", r"\1, 99999;"),
        "out-of-bounds",
    ),
)
