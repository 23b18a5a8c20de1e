"""The server of the page: who may ask, what it answers, and files to download."""
