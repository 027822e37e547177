from collections.abc import Sequence
from typing import Any, ClassVar, Self

from .. import ir

Operand = ir.Value
Result = ir.OpResult
Region = ir.Region

class FieldDef:
    name: str
    constraint: Any

class OperandDef(FieldDef): ...
class AttributeDef(FieldDef): ...
class RegionDef(FieldDef): ...

class ResultDef(FieldDef):
    def process_type(self, type_: ir.Type | None) -> ir.Type | None: ...

def partition_fields(
    fields: Sequence[FieldDef],
) -> tuple[list[OperandDef], list[AttributeDef], list[ResultDef], list[RegionDef]]: ...
def infer_result() -> Any: ...

class Operation(ir.OpView):
    _fields: ClassVar[list[FieldDef]]
    _op_name: ClassVar[str]
    # One parameter for each operand, attribute and type of a result, in the order of declaration;
    # `loc` and `ip` by name.
    def __init__(self, *fields: Any, **named: Any) -> None: ...
    def __init_subclass__(
        cls, *, name: str | None = None, traits: Sequence[type] | None = None
    ) -> None: ...
    def verify_invariants(self) -> bool: ...

class Type(ir.Type):
    type_name: ClassVar[str]
    @classmethod
    def get(cls, *parameters: object) -> Self: ...
    def __init_subclass__(cls, *, name: str) -> None: ...

_Operation = Operation
_Type = Type

class Dialect:
    DIALECT_NAMESPACE: ClassVar[str]
    operations: ClassVar[list[type[Operation]]]
    types: ClassVar[list[type[Type]]]
    def __init_subclass__(cls, *, name: str) -> None: ...
    @classmethod
    def load(cls) -> None: ...
    # In each dialect a class of its own, whose subclasses belong to it.
    class Operation(_Operation): ...

    class Type(_Type):
        def __init_subclass__(cls, *, name: str) -> None: ...
