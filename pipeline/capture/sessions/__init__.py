"""Which frames do the bytes of a connection hold, and which response answers which request?"""
