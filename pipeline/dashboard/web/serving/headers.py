"""The headers of each answer, so that nothing of a stranger can run, look on, or carry away."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import streamlit

from pipeline.dashboard.web.scripts.own import SCRIPTS

_INDEX = Path(streamlit.__file__).with_name("static") / "index.html"
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def answer_headers() -> dict[str, str]:
    """Headers of every answer.

    All comes from the page itself and all goes to it: were a script smuggled in, it would not run, and could not report
    to anybody. Scripts that are in Streamlit's own index, and ours, are known by their hash; styles are made in the
    browser.
    """
    inline = [*_INLINE.findall(_INDEX.read_text(encoding="utf-8")), *SCRIPTS]
    scripts = " ".join(f"'sha256-{_digest(text)}'" for text in inline)
    policy = {
        "default-src": "'none'",
        "script-src": f"'self' {scripts}".strip(),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
