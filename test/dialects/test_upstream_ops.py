"""Ops of `llvm` and `nvvm` that are built by name are those of the bindings' classes."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tilewright.dialects import llvm, nvvm
from tilewright.dialects.mlir import DIALECTS, ir, upstream_class

I1, I32, I64, F32 = "i1", "i32", "i64", "f32"
ANY, GLOBAL, SHARED, TENSOR, CLUSTER = ("!llvm.ptr", *(f"!llvm.ptr<{n}>" for n in (1, 3, 6, 7)))
PAIR, STRUCT = "vector<2xi32>", "!llvm.struct<(i32, i32)>"


def _type(text: str) -> ir.Type:
    return ir.Type.parse(text)


def _value(type_: str) -> ir.Value:
    """A value of a type, which nothing computes."""
    cast = "builtin.unrealized_conversion_cast"
    return ir.Operation.create(cast, results=[_type(type_)]).result


def _values(*types: str) -> list[ir.Value]:
    return [_value(type_) for type_ in types]


OF_LLVM: dict[str, Callable[[], Any]] = {
    "load": lambda: llvm.load(_type(I32), _value(GLOBAL), alignment=4, invariant=True),
    "store": lambda: llvm.store(_value(I32), _value(GLOBAL), alignment=4),
    "alloca": lambda: llvm.alloca(_type(ANY), _value(I32), _type(STRUCT)),
    "element_pointer": lambda: llvm.element_pointer(_value(SHARED), _type("i8"), _value(I32)),
    "member_pointer": lambda: llvm.member_pointer(_value(ANY), _type(STRUCT), 1),
    "address_of": lambda: llvm.address_of(_type(SHARED), "variable"),
    "zero": lambda: llvm.zero(_type(STRUCT)),
    "undef": lambda: llvm.undef(_type(STRUCT)),
    "bitcast": lambda: llvm.bitcast(_type(I64), _value(PAIR)),
    "addrspacecast": lambda: llvm.addrspacecast(_type(CLUSTER), _value(SHARED)),
    "ptrtoint": lambda: llvm.ptrtoint(_type(I32), _value(SHARED)),
    "inttoptr": lambda: llvm.inttoptr(_type(TENSOR), _value(I32)),
    "extractvalue": lambda: llvm.extractvalue(_type(I32), _value(STRUCT), 1),
    "insertvalue": lambda: llvm.insertvalue(*_values(STRUCT, I32), 1),
    "shufflevector": lambda: llvm.shufflevector(_type(PAIR), *_values(PAIR, PAIR), [1, 2]),
    "fma": lambda: llvm.fma(*_values(F32, F32, F32)),
    "fshr": lambda: llvm.fshr(*_values(I32, I32, I32)),
    "call_intrinsic": lambda: llvm.call_intrinsic(_type(I32), "llvm.ctpop.i32", _values(I32)),
    "inline_asm": lambda: llvm.inline_asm(_type(I32), _values(I32), "", "=r,r", True),
    "asm_statement": lambda: llvm.asm_statement("", _values(I32), "r"),
    "fence": lambda: llvm.fence(llvm.ACQUIRE_RELEASE, "device"),
    "atomicrmw": lambda: llvm.atomicrmw(
        llvm.UINC_WRAP, *_values(GLOBAL, I32), llvm.MONOTONIC, "device"
    ),
    "global_": lambda: llvm.global_("variable", _type("!llvm.array<0 x i8>"), 3, "external"),
    "func": lambda: llvm.func("function", _type("!llvm.func<void ()>"), []),
    "return_": lambda: llvm.return_(),
}
OF_NVVM: dict[str, Callable[[], Any]] = {
    "special_register": lambda: nvvm.special_register("tid.x"),
    "elect_sync": lambda: nvvm.elect_sync(),
    "bar_warp_sync": lambda: nvvm.bar_warp_sync(_value(I32)),
    "barrier": lambda: nvvm.barrier(*_values(I32, I32)),
    "barrier_arrive": lambda: nvvm.barrier_arrive(*_values(I32, I32)),
    "cluster_arrive": lambda: nvvm.cluster_arrive(releases=False),
    "cluster_wait": lambda: nvvm.cluster_wait(),
    "mapa": lambda: nvvm.mapa(_type(CLUSTER), *_values(SHARED, I32)),
    "setmaxregister": lambda: nvvm.setmaxregister(40, "decrease"),
    "griddepcontrol": lambda: nvvm.griddepcontrol("wait"),
    "try_cancel": lambda: nvvm.try_cancel(*_values(SHARED, SHARED), multicast=True),
    "query_cancel": lambda: nvvm.query_cancel(_type(I1), "is_canceled", _value("i128")),
    "mbarrier_init": lambda: nvvm.mbarrier_init(*_values(SHARED, I32)),
    "mbarrier_expect_tx": lambda: nvvm.mbarrier_expect_tx(*_values(SHARED, I32)),
    "mbarrier_arrive_expect_tx": lambda: nvvm.mbarrier_arrive_expect_tx(*_values(SHARED, I32)),
    "mbarrier_arrive": lambda: nvvm.mbarrier_arrive(_value(SHARED), "cluster"),
    "mbarrier_try_wait": lambda: nvvm.mbarrier_try_wait(*_values(SHARED, I32), "cluster"),
    "fence_mbarrier_init": lambda: nvvm.fence_mbarrier_init(),
    "fence_proxy_async_shared": lambda: nvvm.fence_proxy_async_shared(),
    "tcgen05_fence": lambda: nvvm.tcgen05_fence("before"),
    "prefetch_tensor_map": lambda: nvvm.prefetch_tensor_map(_value(ANY)),
    "bulk_tensor_prefetch": lambda: nvvm.bulk_tensor_prefetch(_value(ANY), _values(I32, I32)),
    "bulk_tensor_load": lambda: nvvm.bulk_tensor_load(
        *_values(CLUSTER, ANY), _values(I32, I32), *_values(SHARED), mask=_value("i16"), ctas=2
    ),
    "bulk_tensor_store": lambda: nvvm.bulk_tensor_store(*_values(ANY, SHARED), _values(I32, I32)),
    "bulk_commit": lambda: nvvm.bulk_commit(),
    "bulk_wait_read": lambda: nvvm.bulk_wait_read(1),
    "cp_async": lambda: nvvm.cp_async(*_values(SHARED, GLOBAL), 16, "cg", _value(I32)),
    "cp_async_commit": lambda: nvvm.cp_async_commit(),
    "cp_async_wait": lambda: nvvm.cp_async_wait(1),
    "ldmatrix": lambda: nvvm.ldmatrix(_type(STRUCT), _value(SHARED), 2, "row", 8, "b16"),
    "stmatrix": lambda: nvvm.stmatrix(_value(SHARED), _values(I32, I32), "col"),
    "tcgen05_mma": lambda: nvvm.tcgen05_mma(
        "f16", 2, *_values(TENSOR, TENSOR, I64, I32, I1), _value(I64)
    ),
    "tcgen05_mma_block_scale": lambda: nvvm.tcgen05_mma_block_scale(
        "mxf4nvf4", 16, 1, _values(TENSOR, I64, I64, I32, I1), _values(TENSOR, TENSOR)
    ),
    "tcgen05_cp": lambda: nvvm.tcgen05_cp("32x128b", *_values(TENSOR, I64), 2, "warpx4"),
    "tcgen05_commit": lambda: nvvm.tcgen05_commit(*_values(SHARED, "i16"), 2),
    "tcgen05_alloc": lambda: nvvm.tcgen05_alloc(*_values(SHARED, I32), 2),
    "tcgen05_relinquish_alloc_permit": lambda: nvvm.tcgen05_relinquish_alloc_permit(2),
    "tcgen05_dealloc": lambda: nvvm.tcgen05_dealloc(*_values(TENSOR, I32), 2),
    "tcgen05_ld": lambda: nvvm.tcgen05_ld(_type(PAIR), "16x32bx2", _value(TENSOR), _value(I64)),
    "tcgen05_st": lambda: nvvm.tcgen05_st("16x32bx2", *_values(TENSOR, PAIR, I64)),
    "tcgen05_wait": lambda: nvvm.tcgen05_wait("load"),
    "wgmma_fence": lambda: nvvm.wgmma_fence(),
    "wgmma_commit": lambda: nvvm.wgmma_commit(),
    "wgmma_wait": lambda: nvvm.wgmma_wait(0),
}
CASES = [(llvm, name) for name in OF_LLVM] + [(nvvm, name) for name in OF_NVVM]


@pytest.mark.parametrize(("module", "calls"), [(llvm, OF_LLVM), (nvvm, OF_NVVM)])
def test_each_function_has_a_call_here(module: Any, calls: dict[str, Any]) -> None:
    functions = {
        name
        for name, one in vars(module).items()
        if inspect.isfunction(one)
        and not name.startswith("_")
        and one.__module__ == module.__name__
    }
    assert set(calls) == functions


@pytest.mark.parametrize(("module", "name"), CASES, ids=[name for _, name in CASES])
def test_an_op_is_one_of_upstreams(module: Any, name: str) -> None:
    """Its class knows each of its attributes, and it verifies."""
    calls = OF_LLVM if module is llvm else OF_NVVM
    with ir.Context(), ir.Location.unknown():
        block = ir.Module.create().body
        with ir.InsertionPoint(block):
            calls[name]()
        op = block.operations[len(block.operations) - 1].operation
        declared = upstream_class(op.name)
        unknown = set(op.attributes) - set(dir(declared)) - {"operandSegmentSizes"}
        assert not unknown
        if name not in (
            "return_",
            "address_of",
        ):  # which verify in a function, and beside a variable
            assert op.verify()


def test_numbers_of_enumerations_are_upstreams() -> None:
    enums = importlib.import_module(f"{DIALECTS}._llvm_enum_gen")
    assert enums.AtomicBinOp.uinc_wrap == llvm.UINC_WRAP
    assert enums.AtomicOrdering.monotonic == llvm.MONOTONIC
    assert enums.AtomicOrdering.acq_rel == llvm.ACQUIRE_RELEASE


@pytest.mark.parametrize(("dialect", "name"), [("llvm", "load"), ("nvvm", "barrier")])
def test_who_asks_for_the_bindings_classes_gets_them(dialect: str, name: str) -> None:
    module = importlib.import_module(f"{DIALECTS}.{dialect}")
    assert getattr(module, f"{name.title()}Op") is upstream_class(f"{dialect}.{name}")
