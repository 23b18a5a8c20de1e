"""What was said: exchanges and the search among them, connections as steps, differences."""
