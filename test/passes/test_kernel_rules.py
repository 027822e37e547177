"""What passes and the lowering take for granted of a kernel is refused where it is not so.

Each program is what a pass leaves, with a line changed; the whole message is compared.
"""

import pytest
from edited_ir import ir_after, refusal
from kernel_edits import PASSES, RULES, TILING, WARPGROUPS
from kernel_rule_messages import MESSAGES

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError


@pytest.mark.parametrize("name", RULES)
def test_a_kernel_that_passes_cannot_take_for_granted_is_refused(name):
    passes, edit = RULES[name]
    message, line = refusal(passes, edit)
    assert message == MESSAGES[name]
    assert message.partition(":")[0] in line


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_refuses_what_it_cannot_rewrite(name):
    passes, edit, then = PASSES[name]
    message, _ = refusal(passes, edit, then=then)
    assert message == MESSAGES[name]


@pytest.mark.parametrize("name", WARPGROUPS)
def test_a_pass_refuses_what_two_consumers_cannot_share(name):
    passes, edit, then = WARPGROUPS[name]
    message, _ = refusal(passes, edit, "sm_90a", then=then)
    assert message == MESSAGES[name]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cluster = [1, 1, 1]", 'cluster = "x"'),
        ("cluster = [1, 1, 1]", "cluster = [0, 1, 1]"),
        ("threads = 128", 'threads = "x"'),
        ("tensor<128x64xbf16>", "tensor<128xbf16>"),
        ("tensor<128x64xbf16>", "tensor<*xbf16>"),
        ("xbf16", "xi4"),
        ("xbf16", "xindex"),
        ('tile.target = "sm_100a"', "tile.target = 3"),
    ],
)
def test_attributes_and_types_of_another_form_are_refused(old, new):
    text = "\n".join(ir_after(TILING)).replace(old, new)
    with pytest.raises(CompileError):
        run_passes_on_text(text, "kernel.mlir", "tma-insertion")
