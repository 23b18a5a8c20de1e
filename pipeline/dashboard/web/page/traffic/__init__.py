"""Pages of what went over the wire: exchanges, a connection as a sequence, two exchanges side by side."""
