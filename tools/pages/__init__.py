"""Commands that generate pages of docs/."""
