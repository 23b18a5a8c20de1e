"""The TCP segment that a packet carries: link layers, tunnels, IP and its fragments."""
