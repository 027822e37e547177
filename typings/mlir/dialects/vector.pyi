from collections.abc import Sequence

from ..ir import OpResult, OpView, Type, Value

class BroadcastOp(OpView):
    def __init__(self, vector: Type, source: Value) -> None: ...

class ExtractOp(OpView):
    def __init__(
        self, source: Value, dynamic_position: Sequence[Value], static_position: Sequence[int]
    ) -> None: ...

class FromElementsOp(OpView):
    def __init__(self, dest: Type, elements: Sequence[Value]) -> None: ...

def bitcast(result: Type, source: Value) -> OpResult: ...
