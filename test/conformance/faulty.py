"""Matmuls with one fault each, as kernels have them; `right` has none. All take B as [n, k]."""

import threading

import torch

_SCRATCH: dict = {}
_TURN = threading.Barrier(2, timeout=0.2)


def right(a, b, out=None):
    result = (a.double() @ b.double().T).to(a.dtype)
    return result if out is None else out.copy_(result)


def drops_the_k_tail(a, b):
    whole = a.shape[1] // 16 * 16
    return right(a[:, :whole], b[:, :whole])


def leaves_ragged_rows(a, b):
    result = torch.full((a.shape[0], b.shape[0]), float("nan"), dtype=a.dtype)
    whole = a.shape[0] // 8 * 8
    result[:whole] = right(a[:whole], b)
    return result


def transposes_a_square(a, b):
    result = right(a, b)
    return result.T.contiguous() if result.shape[0] == result.shape[1] else result


def ignores_leading_dimensions(a, b):
    dense = a.as_strided(a.shape, (a.shape[1], 1), a.storage_offset())
    return right(dense, b)


def rounds_addresses_down(a, b):
    down = a.storage_offset() // 8 * 8
    return right(a.as_strided(a.shape, a.stride(), down), b)


def swallows_nan(a, b):
    return right(a.nan_to_num(0.0), b)


def multiplies_padding_of_zeros(a, b):
    """Infinity in one row reaches others, as where a mask is a product with 0."""
    return right(a, b) + 0 * a[:, -1].sum()


def flushes_denormals(a, b):
    smallest = torch.finfo(a.dtype).tiny
    return right(torch.where(a.abs() < smallest, 0, a), b)


def sums_in_half(a, b):
    return sum((a[:, i : i + 1] * b[:, i] for i in range(a.shape[1])), start=0 * a[:, :1] * b[:, 0])


def writes_beside_the_output(a, b, out=None):
    result = right(a, b)
    if out is None:
        return result
    flat = out.as_strided((out.numel() + 1,), (1,), out.storage_offset())
    flat[-1] = 1.0
    return out.copy_(result)


def adds_to_the_output(a, b, out=None):
    result = right(a, b)
    return result if out is None else out.add_(result)


def returns_its_own_buffer(a, b):
    key = (a.shape[0], b.shape[0], a.dtype)
    buffer = _SCRATCH.setdefault(key, torch.empty(key[0], key[1], dtype=a.dtype))
    return buffer.copy_(right(a, b))


def scales_its_input(a, b):
    result = right(a, b)
    a.mul_(1.5)
    return result


def shares_scratch_between_threads(a, b):
    _SCRATCH["a"] = a
    try:
        _TURN.wait()
    except threading.BrokenBarrierError:
        _TURN.reset()
    mine = _SCRATCH["a"]
    return right(mine, b) if mine.shape[1] == b.shape[1] else right(a, b)


def refuses_odd_k(a, b):
    if a.shape[1] % 2:
        raise ValueError(f"K must be even, got {a.shape[1]}")
    return right(a, b)
