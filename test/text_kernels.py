"""Kernels of .mlir texts as bundles for the emulator, which runs PTX: they have no cubin."""

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.runtime.bundles.bundle import Bundle, seal

RESOURCES = ("registers", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes")


def bundle_of_text(text: str, target: str, pipeline: str) -> Bundle:
    """The kernel that a pipeline makes of a text, as of a file."""
    source = LinalgText(text, "text.mlir", is_file=True)
    compiled = compile_matmul(source, target=target, pipeline=pipeline, until="ptx")
    manifest = {**compiled.manifest, "spec": None, "target": target, "pipeline": pipeline}
    manifest |= {"tools": {}, "resources": dict.fromkeys(RESOURCES, 0)}
    del manifest["source"]
    return Bundle(seal(manifest, compiled.ptx, b""), compiled.ptx, b"")
