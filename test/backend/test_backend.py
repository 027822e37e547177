"""The back end: LLVM IR to PTX to cubin, its report, and what it says when a step refuses."""

import re
import stat

import pytest

from tilewright.compiler import backend
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

STORE_THREAD_INDEX = """
@flag = internal addrspace(3) global i32 undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @store_index(ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i32 %t, ptr addrspace(3) @flag
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %f = load i32, ptr addrspace(3) @flag
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %f, ptr %p
  ret void
}
"""

MMA_BETWEEN_WAIT_AND_COMMIT = """
@bar = internal addrspace(3) global i64 undef, align 8
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.tcgen05.fence.after.thread.sync()
declare void @llvm.nvvm.tcgen05.mma.shared(ptr addrspace(6), i64, i64, i32, i1, i32, i32, i32)
declare void @llvm.nvvm.tcgen05.commit.shared.cg1(ptr addrspace(3))

define ptx_kernel void @issue(i32 %d, i64 %a, i64 %b, i32 %idesc) {
entry:
  %acc = inttoptr i32 %d to ptr addrspace(6)
  br label %wait
wait:
  %ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(
    ptr addrspace(3) @bar, i32 0)
  br i1 %ok, label %issue, label %wait
issue:
  call void @llvm.nvvm.tcgen05.fence.after.thread.sync()
  call void @llvm.nvvm.tcgen05.mma.shared(ptr addrspace(6) %acc, i64 %a, i64 %b, i32 %idesc,
    i1 false, i32 0, i32 1, i32 0)
  call void @llvm.nvvm.tcgen05.commit.shared.cg1(ptr addrspace(3) @bar)
  ret void
}
"""


@pytest.fixture
def fake_ptxas(tmp_path, monkeypatch):
    """Installs a shell script as ptxas; it prints what it is given and writes an empty cubin."""

    def install(report: str, status: int = 0):
        script = tmp_path / "ptxas"
        script.write_text(
            f"#!/bin/sh\ncat <<'END'\n{report}\nEND\n: > kernel.cubin\nexit {status}\n"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(backend.PTXAS_VARIABLE, str(script))

    return install


def test_llvm_ir_becomes_ptx_of_the_asked_chip_and_version():
    ptx = backend.emit_ptx(STORE_THREAD_INDEX)
    assert ".version 8.8" in ptx
    assert ".target sm_100a" in ptx
    assert re.search(r"\.entry store_index\(", ptx)


def test_another_chip_and_version_reach_the_ptx():
    ptx = backend.emit_ptx(STORE_THREAD_INDEX, chip="sm_90a", ptx_feature="+ptx86")
    assert ".version 8.6" in ptx
    assert ".target sm_90a" in ptx


def test_ptx_becomes_an_elf_cubin_with_its_resources_read():
    assembled = backend.assemble(backend.emit_ptx(STORE_THREAD_INDEX))
    assert assembled.cubin.startswith(b"\x7fELF")
    assert 4 <= assembled.registers <= 255
    assert assembled.static_shared_bytes == 4
    assert assembled.spill_store_bytes == assembled.spill_load_bytes == 0


def test_ptx_keeps_wait_fence_mma_commit_in_order():
    ptx = backend.emit_ptx(MMA_BETWEEN_WAIT_AND_COMMIT)
    order = ["mbarrier.try_wait", "tcgen05.fence::after", "tcgen05.mma", "tcgen05.commit"]
    places = [ptx.index(f"\t{name}") for name in order]
    assert places == sorted(places)
    assert backend.assemble(ptx).cubin


def test_the_report_is_summed_over_functions_and_the_registers_are_the_most(fake_ptxas):
    fake_ptxas(
        "    24 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 100 bytes smem, 900 bytes cmem[0]\n"
        "    0 bytes stack frame, 4 bytes spill stores, 2 bytes spill loads\n"
        "ptxas info    : Used 32 registers, 28 bytes smem"
    )
    assembled = backend.assemble("", allow_spills=True)
    assert assembled.registers == 40
    assert (assembled.spill_store_bytes, assembled.spill_load_bytes) == (12, 18)
    assert (assembled.stack_bytes, assembled.static_shared_bytes) == (24, 128)


def test_a_spill_is_refused_unless_allowed(fake_ptxas):
    fake_ptxas("    64 bytes stack frame, 48 bytes spill stores, 60 bytes spill loads")
    with pytest.raises(CompileError) as refused:
        backend.assemble("")
    assert str(refused.value) == (
        "error: ptxas: registers must not spill, got 48 bytes of stores and 60 of loads a thread;"
        " choose a smaller tile or allow spills"
    )
    assert backend.assemble("", allow_spills=True).spill_store_bytes == 48


ADVICE = (
    "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are "
    "serialized due to insufficient register resources for the wgmma pipeline in the function 'f'"
)


@pytest.mark.parametrize("advice", [ADVICE, ""])
def test_a_kernel_whose_wgmma_ptxas_serializes_is_told_of(
    fake_ptxas, tmp_path, monkeypatch, advice
):
    monkeypatch.chdir(tmp_path)  # where the script is asked for its version, too, it writes
    fake_ptxas(f"{advice}\nptxas info    : Used 168 registers, used 2 barriers")
    compiled = compile_matmul(MatmulSpec(64, 64, 64), target="sm_90a")
    told = [each for each in compiled.remarks if "wgmma" in each]
    assert compiled.assembled.serialized == bool(advice)
    assert told == ([
        "remark: ptxas waits for each wgmma before the next one, which may take a fifth longer; "
        "take another tile or other passes"
    ] if advice else [])  # fmt: skip


def test_ptxas_takes_its_memory_in_large_pages_unless_it_is_told_otherwise(tmp_path, monkeypatch):
    script = tmp_path / "ptxas"
    script.write_text('#!/bin/sh\necho "got $GLIBC_TUNABLES"\n: > kernel.cubin\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(backend.PTXAS_VARIABLE, str(script))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert "got glibc.malloc.hugetlb=1:" in backend.assemble(".version 8.8").log
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=1")
    assert "got glibc.malloc.check=1\n" in backend.assemble(".version 8.7").log


def test_llvm_ir_that_does_not_parse_is_refused_with_its_line():
    with pytest.raises(CompileError, match=r"llvm: IR must parse and verify") as refused:
        backend.emit_ptx("define void @f() {\n  ret i32 nonsense\n}")
    assert ":2:" in str(refused.value)


def test_llvm_ir_that_does_not_verify_is_refused():
    calls_before_definition = (
        "define i32 @f() {\n  %b = add i32 %a, 1\n  %a = add i32 %b, 1\n  ret i32 %a\n}"
    )
    with pytest.raises(CompileError, match=r"llvm: IR must parse and verify"):
        backend.emit_ptx(calls_before_definition)


def test_ptx_that_does_not_assemble_is_refused_with_ptxas_own_line():
    ptx = backend.emit_ptx(STORE_THREAD_INDEX).replace("bar.sync", "bar.sink")
    with pytest.raises(CompileError) as refused:
        backend.assemble(ptx)
    first = str(refused.value).splitlines()[0]
    assert first.startswith(
        "error: ptxas: the PTX must assemble for sm_100a, got: ptxas kernel.ptx"
    )
    assert "line" in first


def test_a_long_ptxas_log_is_cut(fake_ptxas):
    fake_ptxas("\n".join(f"complaint {i}" for i in range(30)), status=255)
    with pytest.raises(CompileError) as refused:
        backend.assemble("")
    assert "complaint 7" in str(refused.value)
    assert "complaint 8" not in str(refused.value)
    assert str(refused.value).endswith("… and 22 more lines")


def test_a_ptxas_that_is_not_there_is_refused_with_the_cure(tmp_path, monkeypatch):
    missing = tmp_path / "no-ptxas"
    monkeypatch.setenv(backend.PTXAS_VARIABLE, str(missing))
    with pytest.raises(CompileError) as refused:
        backend.assemble("")
    assert str(refused.value) == (
        f"error: TILEWRIGHT_PTXAS: must name a file, got '{missing}';"
        " pip install 'nvidia-cuda-nvcc>=13.5.37,<13.6'"
        " or set TILEWRIGHT_PTXAS to a ptxas of CUDA 13"
    )


def test_no_ptxas_anywhere_is_refused_with_the_cure(monkeypatch):
    monkeypatch.delenv(backend.PTXAS_VARIABLE, raising=False)
    monkeypatch.setattr(backend, "_ptxas_of_wheels", list)
    with pytest.raises(CompileError, match="must be installed, found none; pip install"):
        backend.assemble("")


def test_a_ptxas_that_cannot_start_is_refused(tmp_path, monkeypatch):
    script = tmp_path / "ptxas"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    monkeypatch.setenv(backend.PTXAS_VARIABLE, str(script))
    with pytest.raises(CompileError, match=r"ptxas: '.*' must run, got No such file"):
        backend.assemble("")


def test_a_ptxas_that_writes_nothing_is_refused(monkeypatch):
    monkeypatch.setenv(backend.PTXAS_VARIABLE, "/bin/true")
    with pytest.raises(CompileError, match="ptxas: '/bin/true' must write a cubin, got none; pip"):
        backend.assemble("")


def test_ptxas_names_its_release():
    assert re.fullmatch(r"1[3-9]\.\d+\.\d+", backend.ptxas_version(str(backend.find_ptxas())))
