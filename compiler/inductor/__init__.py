"""Products in torch's compiled graphs: found with what follows them, and replaced by one kernel."""
