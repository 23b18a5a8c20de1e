"""What do people want to know of single messages? Each byte on a line, the whole in words, and what they paste."""
