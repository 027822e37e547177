from typing import Any

from mlir.ir import Module

def export_and_import(
    module: Any,
    *inputs: Any,
    output_type: str,
    decomposition_table: dict[Any, Any],
    dynamic_shapes: Any = None,
) -> Module: ...
