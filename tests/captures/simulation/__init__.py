"""Traffic made of recorded conversations: other names, other times, again and again."""
