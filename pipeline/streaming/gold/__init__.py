"""What follows over time? Per partition, client, api and command."""
