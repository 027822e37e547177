"""The products of cublasLt by each algorithm that its heuristics propose, called through ctypes.

torch takes the first of them. Types are bf16 with float32 sums, and the weight is N×K.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")
BF16, F32, COMPUTE_F32 = 14, 0, 68
TRANSPOSED_A, TRANSPOSE = 3, 1
MOST_WORKSPACE = 1
WORKSPACE_BYTES = 32 << 20


class Found(ctypes.Structure):
    """`cublasLtMatmulHeuristicResult_t`."""

    _fields_ = (
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


def algorithms(x: Any, w: Any, most: int) -> list[Callable[[int], Any]]:
    """A launch for each algorithm, at most so many: x times w transposed, in row-major order."""
    import torch

    lt = _library()
    (m, k), n = x.shape, w.shape[0]
    out = torch.empty(m, n, device=x.device, dtype=x.dtype)
    space = torch.empty(WORKSPACE_BYTES, device=x.device, dtype=torch.uint8)
    handle, product = c_void_p(), c_void_p()
    _check(lt.cublasLtCreate(byref(handle)))
    _check(lt.cublasLtMatmulDescCreate(byref(product), COMPUTE_F32, F32))
    transposed = ctypes.byref(c_int(TRANSPOSE))
    _check(lt.cublasLtMatmulDescSetAttribute(product, TRANSPOSED_A, transposed, c_size_t(4)))
    # Column-major, its first operand is our weight, and C has n rows.
    layouts = [_layout(lt, *size) for size in ((k, n), (k, m), (n, m))]
    every = (*layouts, layouts[2])
    results, count = (Found * most)(), c_int()
    preference, limit = c_void_p(), c_size_t(WORKSPACE_BYTES)
    _check(lt.cublasLtMatmulPreferenceCreate(byref(preference)))
    set_limit = lt.cublasLtMatmulPreferenceSetAttribute
    _check(set_limit(preference, MOST_WORKSPACE, byref(limit), c_size_t(8)))
    find = lt.cublasLtMatmulAlgoGetHeuristic
    _check(find(handle, product, *every, preference, c_int(most), results, byref(count)))
    one, zero = c_float(1), c_float(0)

    def launch(result: Found) -> Any:
        held = w, x, out, space  # as long as a launch may come
        a, b, c, scratch = (c_void_p(each.data_ptr()) for each in held)
        stream = c_void_p(torch.cuda.current_stream().cuda_stream)
        operands = a, layouts[0], b, layouts[1], byref(zero), c, layouts[2], c, layouts[2]
        how = byref(result.algorithm), scratch, c_size_t(result.workspace), stream
        _check(lt.cublasLtMatmul(handle, product, byref(one), *operands, *how))
        return out

    useful = [each for each in results[: count.value] if each.state == 0]
    return [lambda _, each=each: launch(each) for each in useful]


def _library() -> Any:
    """The one that torch has loaded."""
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"none of {', '.join(NAMES)} can be loaded")


def _layout(lt: Any, rows: int, columns: int) -> c_void_p:
    layout = c_void_p()
    sizes = c_uint64(rows), c_uint64(columns), ctypes.c_int64(rows)
    _check(lt.cublasLtMatrixLayoutCreate(byref(layout), BF16, *sizes))
    return layout


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cublasLt: status {status}")
