"""What operators of torch share: counted operations, DTensor, calls in the code of Inductor."""
