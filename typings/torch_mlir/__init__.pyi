"""The same bindings under the name that the wheel of torch-mlir gives them, and its importer."""

from mlir import ir as ir
from mlir import passmanager as passmanager
from mlir import rewrite as rewrite
