"""What else speaks TCP: conversations of real programs and libraries where they are at hand, else by specification."""
