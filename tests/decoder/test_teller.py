"""A protocol without words of its own: its errors are told."""

from __future__ import annotations

from decoder.model import Message
from decoder.teller import About, Teller


def test_what_has_no_words_tells_its_errors() -> None:
    teller = Teller(lambda body: [(7, "BROKEN")] if '"oops"' in body else [])
    good, bad = Message({}, {"ok": 1}, "ok"), Message({}, {"oops": 1}, "ok")
    assert teller.tell(good, None) == ""
    assert teller.tell(good, good) == ""
    assert teller.tell(None, bad) == "BROKEN"
    assert teller.errors(bad) == ["BROKEN"]
    assert teller.errors(Message({}, {}, "orphan_response")) == ()
    assert teller.about(good, bad) == About()
    assert teller.of_offset(good, bad, "t", 0, 0) == ""
