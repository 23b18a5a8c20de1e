"""What does Wirelake decode, and how was it measured? Writes docs/coverage.md; run by ``make coverage-docs``.

The version columns are facts of the schema table, the counts are what the comparison with Kafka's classes gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from decoder.kafka.codec.program import compile_programs
from decoder.kafka.schema import table
from tests.oracle import test_differential, test_embedded
from tests.oracle.oracle import RELEASES, SEEDS
from tests.paths import ROOT

PAGE = ROOT / "docs" / "coverage.md"

_HEAD = """# What Wirelake decodes

Every Kafka api, request and response, in every version that Kafka {releases} have. `make coverage-docs` wrote this
page. A version that no release has is `unknown_version`, an api key that none has `unknown_api`; the raw frame is kept.

The last columns are measured: for each api, version and kind Kafka's own classes write {seeds} frames (empty,
greatest, smallest, long arrays, unknown tagged fields, random), and header and body must equal the JSON that Kafka's
`*JsonConverter` classes write of them. *flexible* is the first version with compact lengths and tagged fields
(KIP-482). A string that is not UTF-8 is no error, as in Kafka: U+FFFD stands for each piece of it that is none.
"""

_FOOT = """
{redefined} of {total} frames are not equal and not meant to be: they are of `ReadShareGroupStateSummary` v0 as 3.9.2
had it, before the version was released with another layout.

Messages inside bytes fields (subscriptions and assignments of the consumer protocol in versions 0 to 3 and newer ones,
requests in an Envelope): {embedded}.
"""


def version_facts() -> list[tuple[str, str, str, str, str]]:
    """Api key, name, versions of requests, versions of responses and first flexible version, as the page shows them."""
    programs = compile_programs()
    facts = []
    for key, name in table.api_names().items():
        requests = [version for api, version in programs.requests if api == key]
        responses = [version for api, version in programs.responses if api == key]
        flexible = [v for v in requests if programs.requests[key, v].flexible]
        first = str(min(flexible)) if flexible else "-"
        facts.append((str(key), name, versions_text(requests), versions_text(responses), first))
    return facts


def versions_text(versions: Iterable[int]) -> str:
    """``3``, ``0-13``, or ``-`` for none; versions have no holes."""
    found = sorted(set(versions))
    if not found:
        return "-"
    if len(found) != found[-1] - found[0] + 1:
        raise ValueError(f"versions with holes: {found}")
    return str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}"


def page() -> str:
    """The whole page. Raises as ``tests.oracle.oracle.vectors``."""
    titles = ["key", "api", "requests", "responses", "flexible"]
    titles += [f"in {release}" for release in RELEASES] + [f"equal, {release}" for release in RELEASES]
    rows = [[*facts, *_releases(int(facts[0])), *_measured(int(facts[0]))] for facts in version_facts()]
    rows.append(["", "all", "", "", "", *[""] * len(RELEASES), *_totals()])
    lines = [f"| {' | '.join(row)} |" for row in [titles, ["---"] * len(titles), *rows]]
    return "\n".join([_HEAD.format(releases=" and ".join(RELEASES), seeds=SEEDS), *lines, _foot()])


def _foot() -> str:
    outcomes = [test_differential.run(release) for release in RELEASES]
    embedded = [(release, test_embedded.run(release)) for release in RELEASES]
    return _FOOT.format(
        redefined=sum(outcome.redefined for outcome in outcomes),
        total=sum(outcome.total for outcome in outcomes),
        embedded=", ".join(f"{one.equal}/{one.total} equal ({release})" for release, one in embedded),
    )


def _releases(key: int) -> list[str]:
    return [
        versions_text(version for api, version, _ in test_differential.run(release).frames if api == key)
        for release in RELEASES
    ]


def _measured(key: int) -> list[str]:
    return [_ratio(release, lambda sort: sort[0] == key) for release in RELEASES]


def _totals() -> list[str]:
    return [_ratio(release, lambda _: True) for release in RELEASES]


def _ratio(release: str, wanted: Callable[[tuple[int, int, str]], bool]) -> str:
    outcome = test_differential.run(release)
    total = sum(count for sort, count in outcome.frames.items() if wanted(sort))
    equal = sum(count for sort, count in outcome.equal_frames.items() if wanted(sort))
    return f"{equal}/{total}" if total else "-"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
