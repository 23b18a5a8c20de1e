"""Rules about clients: which software asks for what, and what will break."""
