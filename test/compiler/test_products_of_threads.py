"""`matmul` of what threads multiply: f64 by itself, f32 as it is where the pipeline says so."""

import numpy as np
import pytest

import tilewright

RANDOM = np.random.default_rng(7)


def test_doubles_are_multiplied_as_they_are():
    a, b = RANDOM.standard_normal((9, 7)), RANDOM.standard_normal((5, 7))
    c = tilewright.matmul(a, b, preset="puzzle-tiled")
    assert c.dtype == np.float64
    wanted = a.astype(np.longdouble) @ b.astype(np.longdouble).T
    assert np.abs(c - wanted).max() < 1e-13


@pytest.mark.parametrize(("pipeline", "digits"), [("tiling{tile=3x3x3 mma=fma}", 24), (None, 11)])
def test_single_precision_is_tf32_unless_threads_multiply(pipeline, digits):
    a = np.full((1, 8), 1 + 2.0**-20, np.float32)
    c = tilewright.matmul(a, np.eye(8, dtype=np.float32), pipeline=pipeline)
    assert (c == a).all() == (digits == 24)
