"""Addresses that pages of the site had before: each keeps a small page that leads to where its text is now.

Old anchors of a page that stays are `<a id="…"></a>` in its text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import PurePosixPath

MOVED = {
    "connections.html": "symptoms/client-does-not-connect.html",
    "howto/spark.html": "cluster.html",
}
"""Old address, and the page that took its place, with an anchor where it is part of one."""


def old_pages(moved: Mapping[str, str] = MOVED) -> Iterator[tuple[str, str]]:
    """The address and HTML of a page for each old address. Without JavaScript a link's anchor is lost."""
    for old, new in moved.items():
        target = os.path.relpath(new.partition("#")[0], PurePosixPath(old).parent) + new[new.find("#") :] * ("#" in new)
        to = escape(target, quote=True)
        yield (
            old,
            f'<!doctype html><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{to}">'
            f'<script>location.replace("{to}"{"" if "#" in new else " + location.hash"})</script>'
            f'<meta http-equiv="refresh" content="1; url={to}"><a href="{to}">{to}</a>\n',
        )
