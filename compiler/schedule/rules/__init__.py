"""The constraints on a schedule. A rule returns None if it is met, and otherwise why it is not."""
