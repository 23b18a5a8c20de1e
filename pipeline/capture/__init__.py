"""The capture agent, from packets to landing files; each room knows only those before it.

packets → network (TCP segments) → tcp (byte streams) → sessions (frames) → fast_path (the same by the block) → landing
(files) → runs (the agent at work).
"""
