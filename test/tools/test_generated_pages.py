"""docs/passes/ and docs/presets.md say what the code says."""

from dataclasses import fields
from pathlib import Path

from tilewright.compiler.pipeline import PASSES, all_presets
from tilewright.tools import pass_docs, preset_docs
from tilewright.tools.ir_text import readable

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pass_pages_are_up_to_date():
    written = {path.name: path.read_text() for path in (DOCS / "passes").glob("*.md")}
    assert written == pass_docs.render_all(), "run python -m tilewright.tools.pass_docs"


def test_every_pass_has_a_page_with_its_options_and_short_ir():
    pages = pass_docs.render_all()
    assert set(pages) == {"README.md", *(f"{name}.md" for name in PASSES)}
    for name, pass_class in PASSES.items():
        text = pages[f"{name}.md"]
        options = [option.name for option in fields(pass_class)]
        assert all(f"| `{option}` |" in text for option in options)
        assert len(text.splitlines()) < 160, name


def test_the_preset_page_is_up_to_date():
    assert (DOCS / "presets.md").read_text() == preset_docs.render(), (
        "run python -m tilewright.tools.preset_docs > docs/presets.md"
    )


def test_every_preset_is_described():
    assert set(all_presets()) <= set(preset_docs.STEPS)


def test_readable_ir_names_values_by_op_and_writes_constants_where_they_are_used():
    text = """module {
  "tile.kernel"() ({
  ^bb0(%arg0: memref<4xf32, 1>):
    %c4 = arith.constant 4 : index
    %0:2 = "tile.cta_tile"() : () -> (index, index)
    scf.for %arg1 = %c4 to %c4 step %c4 {
      %1 = "pipe.wait"(%0#1) : (index) -> !pipe.slot<[!tile.smem<tensor<8x8xf16>, "k", "none">]>
      "pipe.release"(%1) : (index) -> ()
    }
    scf.for %arg1 = %c4 to %c4 step %c4 {
      %1 = "pipe.wait"(%0#0) : (index) -> index
    }
    %1 = arith.addi %0#0, %c4 : index
    %2 = arith.addi %1, %c4 : index
  }) {threads = 128 : i64} : () -> ()
}"""
    expected = """tile.kernel() ({
^bb0(%arg0: memref<4xf32, 1>):
  %cta_tile:2 = tile.cta_tile() : (index, index)
  scf.for %arg1 = 4 to 4 step 4 {
    %wait = pipe.wait(%cta_tile#1) : !pipe.slot
    pipe.release(%wait)
  }
  scf.for %arg1 = 4 to 4 step 4 {
    %wait = pipe.wait(%cta_tile#0) : index
  }
  %addi = arith.addi %cta_tile#0, 4 : index
  %addi2 = arith.addi %addi, 4 : index
}) {threads = 128 : i64}
"""
    assert readable(text) == expected
