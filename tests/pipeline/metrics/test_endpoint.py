"""The endpoint gives samples as Prometheus reads them, and states whether the process lives and does its work."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.errors import UserError
from pipeline.metrics.endpoint import Address, Exposed, serving
from pipeline.metrics.sample import Sample


@contextmanager
def _served(exposed: Exposed, address: str = "0") -> Iterator[str]:
    lines: list[str] = []
    with serving(address, exposed, lines.append):
        yield lines[0].removeprefix("metrics: ").removesuffix("/metrics")


def _ask(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - our own
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_samples_are_read_by_the_clients_own_parser() -> None:
    exposed = Exposed()
    exposed.show(
        [
            Sample("wirelake_x", "counter", "Things.", 3, {"kind": "a"}),
            Sample("wirelake_x", "counter", "Things.", 4, {"kind": 'b"\n'}),
            Sample("wirelake_y_seconds", "gauge", "Time, s.", 1.5),
        ]
    )
    with _served(exposed) as url:
        status, text = _ask(f"{url}/metrics")
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200
    assert [(one.labels, one.value) for one in found["wirelake_x"].samples] == [
        ({"kind": "a"}, 3.0),
        ({"kind": 'b"\n'}, 4.0),
    ]
    assert found["wirelake_x"].samples[0].name == "wirelake_x_total"
    assert (found["wirelake_x"].type, found["wirelake_x"].documentation) == ("counter", "Things.")
    assert found["wirelake_y_seconds"].samples[0].value == 1.5
    assert found["wirelake_ready"].samples[0].value == 0.0
    assert "process_resident_memory_bytes" in found


def test_it_is_ready_from_its_first_beat_until_something_is_wrong() -> None:
    wrong: list[str] = []
    exposed = Exposed(must_hold=lambda: next(iter(wrong), None))
    with _served(exposed) as url:
        assert _ask(f"{url}/healthz") == (200, "it runs\n")
        assert _ask(f"{url}/readyz") == (503, "it has not begun yet\n")
        exposed.beat()
        assert _ask(f"{url}/readyz") == (200, "it does its work\n")
        wrong.append("the lake is gone")
        assert _ask(f"{url}/readyz") == (503, "the lake is gone\n")
        assert _ask(f"{url}/other")[0] == 404


def test_who_does_not_go_on_is_not_ready() -> None:
    exposed = Exposed(most_silent_s=-1.0)
    exposed.beat()
    assert (exposed.why_not_ready() or "").startswith("it has not continued for")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),  # noqa: S104 - only parsed
        ("[::1]:9464", ("::1", 9464)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize("text", ["", "x", ":9464", "1.2.3.4:", "70000", "9464x", "-1", "\u0661"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"e\.g\. 9464 or 0\.0\.0\.0:9464"):
        Address.parse(text)


def test_an_address_that_is_taken_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--metrics {port}: cannot listen there"), serving(str(port), Exposed()):
            pass


def test_both_families_of_addresses() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with _served(Exposed(), "[::1]:0") as url:
        assert _ask(f"{url}/healthz")[0] == 200


def test_without_an_address_nothing_is_served() -> None:
    lines: list[str] = []
    with serving(None, Exposed(), lines.append):
        assert not lines
