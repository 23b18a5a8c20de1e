"""``wirelake open``: views by values, the program by its keys, the command in a terminal."""
