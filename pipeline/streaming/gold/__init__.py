"""What follows over time, for each partition, client, api and command."""
