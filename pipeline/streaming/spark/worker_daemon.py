"""PySpark's daemon, but a worker whose JVM has gone ends without a word: by the signal that is meant for it.

Python ignores it, and a worker that is just asked to end writes a traceback into the user's terminal.
"""

from __future__ import annotations

import signal

from pyspark.daemon import manager

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    manager()
