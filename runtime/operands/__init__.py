"""Arguments of a call: numpy, torch and DLPack tensors, bound to parameters."""
