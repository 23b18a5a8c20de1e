"""Prints what the page shows of a lake: `python -m tests.protocols.show_page LAKE PAGE [NAME=VALUE…]`."""

from __future__ import annotations

import os
import re
import sys
from html import unescape
from pathlib import Path

from streamlit.testing.v1 import AppTest

import pipeline

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
"""A mark that Markdown shows as it is."""


def main(lake: str, page: str, *parameters: str) -> None:
    """Run one page and print all its texts and tables, as they are read."""
    os.environ["WIRELAKE_LAKE"] = lake
    web = Path(pipeline.__file__).parent / "dashboard" / "web"
    app = AppTest.from_file(str(web / "app.py"), default_timeout=60)
    app.query_params.update({name: [value] for name, _, value in (part.partition("=") for part in parameters)})
    if page != "findings":
        (script,) = (web / "page").rglob(f"{page}.py")
        app.switch_page(str(script.relative_to(web)))
    app.run()
    failed = [error.message for error in app.exception]
    if failed:
        sys.exit("\n".join(failed))
    for shown in (*app.markdown, *app.header, *app.text, *app.caption, *app.code, *app.error, *app.warning):
        print(_ESCAPED.sub(r"\1", shown.value))
    for line in app.expander:
        print(_ESCAPED.sub(r"\1", line.label))
    for table in app.get("html"):
        print(unescape(table.proto.body))
    for table in app.dataframe:
        print(table.value.to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
