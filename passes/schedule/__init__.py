"""The passes of a schedule behind `tiling`, one file a pass; docs/passes/README.md orders them."""
