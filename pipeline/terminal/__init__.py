"""Output on a terminal: safe text, lines, colours, the pager, and the names of options."""
