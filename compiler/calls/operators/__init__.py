"""What all operators of torch share: FLOP counts, DTensor, calls in code of Inductor."""
