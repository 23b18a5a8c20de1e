"""Questions to a lake: ``sql``, ``tables`` and ``describe``."""
