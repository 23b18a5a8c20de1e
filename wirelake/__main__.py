"""``python -m wirelake`` is the command ``wirelake``."""

from __future__ import annotations

from wirelake.start import main

if __name__ == "__main__":
    main()
