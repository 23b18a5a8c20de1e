"""Speed, side by side with peers on the same input, in one run."""
