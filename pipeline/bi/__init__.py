"""What other tools need to ask a lake: names and comments for their catalogs, and queries for dashboards."""
