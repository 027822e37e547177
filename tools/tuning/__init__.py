"""What `tilewright tune` compiles, keeps and ranks."""
