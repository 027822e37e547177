"""Uses of tcgen05.ld's registers that a path without tcgen05.wait::ld leads to are suspicions."""

import numpy as np
import pytest

WAIT = "tcgen05.wait::ld.sync.aligned;\n"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r15+256];\n"
USE = "st.global.u32 [%rd1], %v0;\n"


def categories(tc, body: str) -> list[str]:
    """Of the warnings about a kernel that stores to tensor memory, and then does `body`"""
    text = tc.store_fragment("mov.b32 %v0, 5;\n", 1) + body + WAIT
    report = tc.run(text, b"", np.zeros(4, np.uint32), columns=512)
    return [str(each) for each in report.warnings]


@pytest.mark.parametrize(
    "body",
    [
        LOAD + USE,
        LOAD + "setp.eq.u32 %p5, %r0, 999; @%p5 bra SKIP;\n" + WAIT + "SKIP:\n" + USE,
        LOAD + "bra USING;\n" + WAIT + "USING:\n" + USE,
        "mov.b32 %r20, 0;\nAGAIN:\n" + LOAD + "add.u32 %r20, %r20, 1; setp.lt.u32 %p5, %r20, 2;\n"
        "@%p5 bra AGAIN;\n" + USE,
    ],
)
def test_a_use_on_any_path_before_the_wait_is_noted_once_a_load(tc, body):
    (warning,) = categories(tc, body)
    assert warning.startswith("early-use: ptx:") and "`st.global.u32 [%rd1], %v0`" in warning


@pytest.mark.parametrize(
    "body",
    [
        LOAD + WAIT + USE,
        LOAD + "setp.eq.u32 %p5, %r0, 999; @%p5 bra AWAY;\n" + WAIT + USE + "AWAY:\n",
        "mov.b32 %r20, 0;\nAGAIN:\n" + LOAD + WAIT + USE + "add.u32 %r20, %r20, 1;\n"
        "setp.lt.u32 %p5, %r20, 2; @%p5 bra AGAIN;\n",
    ],
)
def test_uses_behind_the_wait_are_not(tc, body):
    assert categories(tc, body) == []


@pytest.mark.parametrize("release", ["bar.sync 1;\n", "tcgen05.fence::before_thread_sync;\n"])
def test_without_any_wait_before_a_release_the_suspicion_is_another(tc, release):
    (warning,) = categories(tc, LOAD + USE + release)
    assert warning.startswith("unwaited-load: ptx:")
    assert "none follows before ptx:" in warning
    assert f"`{release[:-2]}` tells others" in warning
    (warning,) = categories(tc, LOAD + USE + WAIT + release)
    assert warning.startswith("early-use: ")


def test_a_release_on_another_path_says_nothing(tc):
    body = (
        LOAD + "setp.eq.u32 %p5, %r0, 999; @%p5 bra AWAY;\n" + USE + WAIT + "bar.sync 1;\nAWAY:\n"
    )
    (warning,) = categories(tc, body)
    assert warning.startswith("early-use: ")
