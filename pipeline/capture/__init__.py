"""The capture agent: from packets to landing files.

packets (pcap) → TCP segments (link) → byte streams (tcp) → frames (session) → landing files (landing).
"""
