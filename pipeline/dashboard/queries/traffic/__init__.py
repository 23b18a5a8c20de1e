"""What was exchanged: exchanges and the search among them, connections as steps, differences."""
