"""The passes of a schedule after `tiling`, one file a pass; docs/passes/README.md orders them."""
