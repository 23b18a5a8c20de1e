"""The server of the page: who may ask, by which names of it, and with which headers it answers."""
