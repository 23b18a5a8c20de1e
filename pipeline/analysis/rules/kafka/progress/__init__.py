"""Does a group get on? Its commits, fetches and the ends of logs over time."""
