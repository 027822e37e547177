"""What a kernel can be made of: linalg text, .mlir files, torch modules and their files."""
