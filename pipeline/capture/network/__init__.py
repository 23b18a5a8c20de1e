"""Which TCP segment does a packet carry? Link layers, tunnels, IP and its fragments."""
