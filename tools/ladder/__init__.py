"""The rungs of ladders: what each adds, its bounds, and its published and predicted speed."""
