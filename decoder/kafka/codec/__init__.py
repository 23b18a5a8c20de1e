"""From the bytes of a frame to its header and body, by one program for each api and version."""
