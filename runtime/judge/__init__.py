"""What a result should be, and how far it may be off."""
