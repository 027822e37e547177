"""The rules that a schedule must keep."""
