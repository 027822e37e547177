"""What can look over a launch's shoulder: traces and profiles. A launch without pays nothing."""
