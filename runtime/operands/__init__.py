"""What callers hand in: tensors of numpy, torch and DLPack, bound to parameters."""
