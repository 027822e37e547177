"""Products and modules as calls: a kernel is compiled when its operands first come."""
