"""What a kernel leaves out: elements of an output unwritten, of an operand or of scratch unread."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import LaunchError, TensorMap, Trap, launch

ROWS, COLUMNS = 4, 32
# Thread (row, column) copies in[row, column] to out[row, column]; CTAs are rows.
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .b32 %row, %column, %index, %value; .reg .b64 %in, %out; .reg .pred %most;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  mov.u32 %row, %ctaid.x; mov.u32 %column, %tid.x;
  mad.lo.u32 %index, %row, 32, %column;
  mad.wide.u32 %in, %index, 4, %in; mad.wide.u32 %out, %index, 4, %out;
  ld.global.b32 %value, [%in];
  setp.ne.u32 %most, %index, 37;
  st.global.b32 [%out], %value;
  ret;
}"""


def run(kernel: str = KERNEL, shape: tuple[int, ...] = (ROWS, COLUMNS), **options):
    source = np.arange(ROWS * COLUMNS, dtype=np.uint32).reshape(shape)
    out = np.full(shape, 7, np.uint32)
    given = {name: [out] for name in ("outputs", "scratch") if options.pop(name, False)}
    given |= {"inputs": [source]} if options.pop("inputs", False) else {}
    return launch(
        kernel, "k", grid=ROWS, block=COLUMNS, params=[source, out], **given, **options
    ).warnings


def one_left_out(what: str) -> str:
    return KERNEL.replace(what, f"@%most {what}")


def told(warnings) -> list[str]:
    return [each.category for each in warnings]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_output_that_is_written_whole_and_an_input_that_is_read_whole_say_nothing(workers):
    assert run(outputs=True, inputs=True, workers=workers) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_element_of_an_output_that_is_never_written_is_an_error(workers):
    with pytest.raises(Trap) as caught:
        run(one_left_out("st.global.b32"), outputs=True, workers=workers)
    assert str(caught.value) == (
        "error: unwritten-output: every element of an output must be written, got 1 of 128"
        " elements, [1, 5] first, of parameter 1 (out) that never were"
    )


def test_an_element_of_which_some_bytes_are_written_is_not_written():
    some = "st.global.b32 [%out], %value;\n  @!%most st.global.b8 [%out], %value;"
    kernel = one_left_out("st.global.b32").replace("st.global.b32 [%out], %value;", some)
    with pytest.raises(Trap, match=r"unwritten-output: .* 1 of 128 elements, \[1, 5\] first"):
        run(kernel, outputs=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_single_elements_beside_others_are_told_of_any_array(workers):
    (warning,) = run(one_left_out("st.global.b32"), workers=workers)
    assert str(warning) == (
        "unwritten-output: 1 of 128 elements, [1, 5] first, of parameter 1 (out) were never"
        " written, beside others of their rows and of their columns"
    )


@pytest.mark.parametrize(
    ("fact", "condition"),
    [
        ("whole rows", "setp.ne.u32 %most, %row, 2;"),
        ("whole columns", "setp.lt.u32 %most, %column, 20;"),
        ("half of it", "setp.le.u32 %most, %column, %row;"),
    ],
)
def test_regular_parts_that_are_left_out_say_nothing(fact, condition):
    kernel = one_left_out("st.global.b32").replace("setp.ne.u32 %most, %index, 37;", condition)
    assert run(kernel) == []


def test_a_flat_array_has_no_rows_that_could_tell():
    assert run(one_left_out("st.global.b32"), (ROWS * COLUMNS,)) == []


def test_an_array_that_is_read_too_may_be_written_in_part():
    kernel = one_left_out("st.global.b32").replace(
        "setp.ne", "ld.global.b32 %row, [%out]; add.u32 %value, %value, %row; setp.ne"
    )
    assert run(kernel) == []


def test_an_element_of_an_input_that_is_never_read_is_told():
    kernel = one_left_out("ld.global.b32")
    kernel = kernel.replace("mov.u32 %row", "mov.u32 %value, 0; mov.u32 %row")
    kernel = kernel.replace("  setp.ne.u32 %most, %index, 37;\n", "").replace(
        "  @%most", "  setp.ne.u32 %most, %index, 37;\n  @%most"
    )
    (warning,) = run(kernel, inputs=True)
    assert str(warning) == (
        "unread-input: 1 of 128 elements, [1, 5] first, of parameter 0 (in) were never read"
    )
    assert run(kernel) == []


READ_BACK = KERNEL.replace("  ret;", "  @%most ld.global.b32 %value, [%out];\n  ret;")


def test_scratch_that_is_written_and_never_read_is_told():
    (warning,) = run(READ_BACK, scratch=True)
    assert str(warning).startswith("unread-scratch: 1 of 128 elements, [1, 5] first, of")
    assert run(READ_BACK.replace("@%most ld", "ld"), scratch=True) == []


@pytest.mark.parametrize("sign", ["", "or.b32 %value, %value, 0x80000000;"])
def test_zeros_in_scratch_need_no_reader(sign):
    """As sums of what lies past the edge of a tile; element 0 holds 0, element 37 does not."""
    kernel = READ_BACK.replace("37", "0").replace("  st.global", f"  {sign} st.global")
    assert run(kernel, scratch=True) == []


@pytest.mark.parametrize(("bits", "told"), [("0xffc00001", 0), ("0xff800000", 1)])
def test_nan_in_scratch_needs_no_reader(bits, told):
    """As sums of scales that pad their atoms; an infinity is a sum."""
    kernel = READ_BACK.replace("  st.global", f"  mov.b32 %value, {bits};\n  st.global")
    assert len(run(kernel, scratch=True)) == told


def test_scratch_that_is_read_before_it_is_written_is_an_error():
    kernel = READ_BACK.replace("@%most ld", "ld").replace("  st.global", "  @%most st.global")
    with pytest.raises(Trap, match="uninitialised-read: scratch memory") as caught:
        run(kernel, scratch=True)
    assert "1 of 128 elements, [1, 5] first, of parameter 1 (out) that" in str(caught.value)


def test_what_a_strong_store_leaves_in_scratch_needs_no_reader():
    kernel = KERNEL.replace("st.global.b32 [%out]", "st.relaxed.gpu.global.b32 [%out]")
    assert run(kernel, scratch=True) == []


@pytest.mark.parametrize("check", ["off", "fast"])
def test_levels_that_check_less_say_nothing(check):
    assert run(one_left_out("st.global.b32"), outputs=True, check=check) == []


def test_gaps_between_rows_belong_to_no_element():
    memory = np.zeros((ROWS, 2 * COLUMNS), np.uint32)
    kernel = KERNEL.replace("mad.wide.u32 %out, %index", "mad.lo.u32 %index, %row, 64, %column;"
                            " mad.wide.u32 %out, %index")  # fmt: skip
    source, out = np.zeros((ROWS, COLUMNS), np.uint32), memory[:, :COLUMNS]
    assert launch(kernel, "k", grid=ROWS, block=COLUMNS, params=[source, out],
                  outputs=[out]).warnings == []  # fmt: skip


def test_a_part_of_an_array_may_be_all_that_is_asked_for():
    source, out = (np.zeros((ROWS, COLUMNS), np.uint32) for _ in range(2))
    kernel = one_left_out("st.global.b32").replace("%index, 37", "%row, 3")
    how = dict(grid=ROWS, block=COLUMNS, params=[source, out])
    launch(kernel, "k", **how, outputs=[out[:3]])
    with pytest.raises(Trap, match="32 of 64 elements, \\[1, 0\\] first"):
        launch(kernel, "k", **how, outputs=[out[2:]])


def test_an_array_that_is_not_passed_is_refused():
    with pytest.raises(LaunchError, match="must be arrays that are passed"):
        source, out = (np.zeros((ROWS, COLUMNS), np.uint32) for _ in range(2))
        launch(KERNEL, "k", grid=ROWS, block=COLUMNS, params=[source, out], outputs=[source.copy()])


@pytest.mark.parametrize(
    ("given", "got"),
    [(5, "int"), ([5], "int in it"), (np.zeros(4), "ndarray"), (["out"], "str in it")],
)
def test_what_is_no_list_of_arrays_is_refused(given, got):
    with pytest.raises(LaunchError, match=f"scratch: must be a list of numpy arrays, got {got}"):
        launch(KERNEL, "k", grid=1, block=1, params=[0, 0], scratch=given)


def test_an_array_that_is_not_passed_is_refused_before_anything_runs():
    source, out = (np.ones((ROWS, COLUMNS), np.uint32) for _ in range(2))
    with pytest.raises(LaunchError, match="must be arrays that are passed"):
        launch(KERNEL, "k", grid=ROWS, block=COLUMNS, params=[source * 2, out], inputs=[source])
    assert (out == 1).all()


BOXES = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128]) {
  .reg .b64 %from, %to; .reg .b32 %row; .reg .pred %done;
  .shared .align 128 .b8 box[256]; .shared .align 8 .b64 full;
  mov.b64 %from, from; mov.b64 %to, to; cvta.param.u64 %from, %from; cvta.param.u64 %to, %to;
  mov.u32 %row, %ctaid.x; shl.b32 %row, %row, 1;
  mbarrier.init.shared::cta.b64 [full], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [box], [%from, {0, %row}], [full];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 0;
  @!%done bra WAIT;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%to, {0, %row}], [box];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}"""


@pytest.mark.parametrize("ctas", [2, 1])
def test_boxes_of_tensor_copies_count(ctas):
    arrays = [np.zeros((ROWS, COLUMNS), np.uint32) for _ in range(2)]
    maps = [TensorMap(array, "u32", dims=(32, 4), strides=(128,), box=(32, 2)) for array in arrays]
    how = dict(grid=ctas, block=1, params=maps)
    report = launch(BOXES, "k", **how, inputs=arrays[:1])
    assert told(report.warnings) == ["unread-input"] * (2 - ctas)
    if ctas == 1:
        with pytest.raises(Trap, match="64 of 128 elements, \\[2, 0\\] first"):
            launch(BOXES, "k", **how, outputs=arrays[1:])
