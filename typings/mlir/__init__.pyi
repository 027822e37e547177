"""What the tree uses of MLIR's Python bindings; the wheels ship no stubs of them.

`dialects/mlir.py` names the modules, and the signatures are those that the bindings print
(`__nb_signature__`) or that stand in the generated builders (`dialects/_*_ops_gen.py`).
"""
