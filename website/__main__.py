"""``python -m website`` (or ``make docs``) writes the reference, and builds the site into dist/site."""

from __future__ import annotations

import sys

from website.build import SITE, SiteError, build
from website.reference import write

if __name__ == "__main__":
    write()
    try:
        build(SITE)
    except SiteError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{SITE / 'index.html'}\n")
