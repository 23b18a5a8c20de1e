"""What people want to know of single messages: each byte on a line, the whole in words, and what they paste."""
