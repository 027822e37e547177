"""What passes and the lowering take for granted of a kernel, checked between passes."""
