"""A protocol without words of its own: its errors are told."""

from __future__ import annotations

from decoder.explain.describer import About, Describer
from decoder.model import Message


def test_what_has_no_words_tells_its_errors() -> None:
    describer = Describer(lambda body: [(7, "BROKEN")] if '"oops"' in body else [])
    good, bad = Message({}, {"ok": 1}, "ok"), Message({}, {"oops": 1}, "ok")
    assert describer.describe(good, None) == ""
    assert describer.describe(good, good) == ""
    assert describer.describe(None, bad) == "BROKEN"
    assert describer.errors(bad) == ["BROKEN"]
    assert describer.errors(Message({}, {}, "orphan_response")) == ()
    assert describer.about(good, bad) == About()
    assert describer.of_offset(good, bad, "t", 0, 0) == ""
