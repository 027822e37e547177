"""y = 2 x, with an assertion about every x and a line printed by each thread."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers

COUNT = 96


@triton.jit
def checked(x, y, count, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    values = tl.load(x + at, mask=at < count, other=0)
    tl.device_assert(values < 100, "x must be below 100")
    tl.device_print("x: ", values)
    tl.store(y + at, values * 2, mask=at < count)


CASE = Case(
    checked,
    targets=(80, 100),
    grid=(2,),
    arguments=dict(
        x=Tensor("s32", (COUNT,), integers(1, -1000, 99)),
        y=Tensor("s32", (COUNT,)),
        count=COUNT,
        SIZE=Constant(64),
    ),
    options=dict(num_warps=2, debug=True),
)
