"""Messages to other systems about incidents that begin, change and end."""
