"""f32 scales by which threads multiply products."""
