"""y[r, c] = (x - mean) / sqrt(variance + eps) * gain + shift, a program a row; mean and 1/deviation
are outputs as well."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, normal

ROWS, COLUMNS = 5, 500


@triton.jit
def layer_norm(x, gain, shift, y, mean_out, scale_out, columns, eps, SIZE: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, SIZE)
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + eps)
    factor = tl.load(gain + column, mask=inside)
    result = centred * scale * factor + tl.load(shift + column, mask=inside)
    tl.store(y + row * columns + column, result, mask=inside)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)


CASE = Case(
    layer_norm,
    targets=(80, 90, 100),
    grid=(ROWS,),
    arguments=dict(
        x=Tensor("bf16", (ROWS, COLUMNS), normal(1)),
        gain=Tensor("f32", (COLUMNS,), normal(2)),
        shift=Tensor("f32", (COLUMNS,), normal(3)),
        y=Tensor("f32", (ROWS, COLUMNS)),
        mean_out=Tensor("f32", (ROWS,)),
        scale_out=Tensor("f32", (ROWS,)),
        columns=COLUMNS,
        eps=1e-5,
        SIZE=Constant(512),
    ),
    options=dict(num_warps=4),
)
