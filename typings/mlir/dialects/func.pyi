from collections.abc import Sequence

from ..ir import Block, FunctionType, InsertionPoint, OpView, Region, StringAttr, Type, Value

class FuncOp(OpView):
    def __init__(
        self,
        name: str,
        type: FunctionType | tuple[Sequence[Type], Sequence[Type]],
        *,
        ip: InsertionPoint | None = None,
    ) -> None: ...
    @property
    def body(self) -> Region: ...
    @property
    def sym_name(self) -> StringAttr: ...
    @property
    def type(self) -> FunctionType: ...
    @property
    def entry_block(self) -> Block: ...
    def add_entry_block(self) -> Block: ...

class ReturnOp(OpView):
    def __init__(self, operands: Sequence[Value]) -> None: ...
