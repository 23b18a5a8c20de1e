"""``wirelake findings``: what is wrong, in plain words. Reads the lake without a JVM."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from pipeline.analysis.rules.model import SEVERITIES
from pipeline.commands.incidents import Row, by_severity, chosen, headed, nothing, show_incidents
from pipeline.commands.unjudged import demand_judged, errors_of_lake, warn_of_errors
from pipeline.config.common_options import Lake
from pipeline.errors import UserError, no_lake
from pipeline.humanize import moment, pluralize
from pipeline.lake.path_checks import is_lake
from pipeline.tables import FINDINGS, WRITTEN_BY_DIAGNOSE
from pipeline.terminal.console import Console, json_line, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.analysis.cluster_catalog import ClusterCatalog
    from pipeline.capture.stats import CaptureStats
    from pipeline.embedded.diagnosis import Diagnosis, Looked

_EVIDENCE_SHOWN = 3
_NAMES_SHOWN = 5
_SIMILAR = 0.7
"""From which likeness on a name may be meant: `all` is no `stalled`."""
_PAGE = "http://127.0.0.1:8501"
"""Where `wirelake dashboard` is by default."""

Flat = Annotated[bool, typer.Option("--flat", help="List findings one by one instead of incidents.")]


def findings(
    lake: Lake,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a finding.")] = False,
    ongoing: Annotated[
        bool, typer.Option("--ongoing", help="Only what is still ongoing, or may be, when the capture ends.")
    ] = False,
    is_open: Annotated[bool, typer.Option("--open", hidden=True, help="The same as --ongoing.")] = False,
    flat: Flat = False,
    rule: Annotated[
        list[str] | None, typer.Option(help="Only incidents with a finding of this rule; may be given several times.")
    ] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option(help="Only this severity: critical, warning or info; may be given several times."),
    ] = None,
    muted: Annotated[bool, typer.Option("--muted", help="Also incidents that somebody muted on the page.")] = False,
) -> None:
    """Show what is wrong in a lake, who causes it and what to do.

    It lists incidents, the most urgent first, with the findings behind them. Muted incidents count only with --muted.

    The exit code is 1 if one of them is critical, else 2 if there is no lake, if nothing in it was judged, or if a rule
    failed.

    Examples:

      wirelake findings --lake demo-lake

      wirelake findings --lake demo-lake --json | jq 'select(.rule == "stuck_commit")'

      wirelake findings --lake demo-lake --ongoing || alert    # what is resolved does not count

      wirelake findings --lake demo-lake --flat --rule stuck_commit --rule commit_regressed
    """
    demand_known(rule or (), severity or ())
    from pipeline.analysis.safety.guard import noting  # noqa: PLC0415 - loads DuckDB and Arrow

    with noting() as noted:
        incidents, findings = read_incidents(lake)
    demand_judged(lake, has_findings=bool(findings))
    if not muted:
        incidents, findings = _unmuted(incidents, findings)
    has_failed = warn_of_errors([*errors_of_lake(lake), *noted.errors], Console(stderr=True))
    kept, rows = chosen(incidents, findings, rule or (), severity or (), only_ongoing=ongoing or is_open)
    if as_json:
        for row in rows:
            sys.stdout.buffer.write(json_line(row))
        sys.stdout.flush()
    elif flat:
        show_findings(rows, Console(), hidden=len(findings) - len(rows))
    else:
        hidden = len(incidents) - len(kept)
        console = Console()
        if kept:
            say_what_serves(lake, console)
        show_incidents(kept, findings, partial(lake_commands, lake), console, hidden=hidden)
    if any(row["severity"] == "critical" for row in (rows if as_json or flat else kept)):
        raise typer.Exit(1)
    if has_failed:
        raise typer.Exit(2)


def _unmuted(
    incidents: list[dict[str, Any]], findings: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Incidents that are not muted, and findings of no other ones; says how many are left out."""
    kept = [row for row in incidents if not row["is_muted"]]
    if left_out := len(incidents) - len(kept):
        words = f"{pluralize(left_out, 'muted incident is', 'muted incidents are')} left out: --muted includes them."
        Console(stderr=True).print(words)
    muted = {name for row in incidents if row["is_muted"] for name in row["findings"]}
    return kept, [row for row in findings if row["finding_id"] not in muted]


def demand_known(rules: Collection[str], severities: Collection[str]) -> None:
    """Refuse names that nothing has.

    Raises:
        UserError: there is no such rule or severity.
    """
    from pipeline.analysis.rules.rule import all_rules  # noqa: PLC0415 - loads DuckDB and Arrow

    names = [rule.name for rule in all_rules()] if rules else []
    of_rules = f"docs/findings.md lists all {len(names)}; without --rule all of them count"
    of_severities = f"name one of {', '.join(SEVERITIES)}"
    for given, known, what, listed in (
        (rules, names, "rule", of_rules), (severities, SEVERITIES, "severity", of_severities),
    ):  # fmt: skip
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, 1, _SIMILAR)
                hint = f", but {near[0]}" if near else ""
                raise UserError(f"there is no {what} {name!r}{hint}: {listed}")


def lake_commands(lake: str, row: Row) -> list[str]:
    """The commands that show an incident of a lake."""
    from pipeline.analysis.incidents.report import sql_command  # noqa: PLC0415

    return [sql_command(lake, row["sql"]), f"{_PAGE}{row['page']}"]


def say_what_serves(lake: str, console: Console) -> None:
    """Print what must run before the addresses of :func:`lake_commands` lead anywhere."""
    command = f"wirelake dashboard --lake {quote(lake)}"
    console.print(Text(f"For the http:// addresses below run first: {command}"), soft_wrap=True)


def read_incidents(lake: Path | str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All incidents of a lake, what must be done first first, and its findings as :func:`read_findings` gives them.

    They follow from the findings alone, so that a lake of an older release has them, too. ``is_muted`` says whether
    somebody muted an incident; what somebody resolved is, unless something was seen of it since.

    Raises:
        UserError: see read_findings.
    """
    from pipeline.analysis.incidents.incidents import grouped, incidents_table  # noqa: PLC0415 - loads Arrow
    from pipeline.analysis.incidents.notes import as_noted  # noqa: PLC0415
    from pipeline.analysis.rules.run import finding_rows, findings_table  # noqa: PLC0415 - loads DuckDB
    from pipeline.lake.incident_notes import read_notes  # noqa: PLC0415 - by delta-rs

    judgement = grouped(finding_rows(_findings_of(lake)))
    incidents = as_noted(incidents_table(judgement.incidents).to_pylist(), read_notes(str(lake)), _now())
    return incidents, in_order(findings_table(judgement.findings).to_pylist())


def _now() -> datetime:
    return datetime.now(timezone.utc)


def read_findings(lake: Path | str) -> list[dict[str, Any]]:
    """All rows of ``gold.findings``, the most severe first, and of these what still holds.

    Raises:
        UserError: there is no such table, it cannot be read, or it leads out of its folder.
    """
    return in_order(_findings_of(lake).to_pylist())


def _findings_of(lake: Path | str) -> pa.Table:
    from pipeline.lake.delta_reader import read_table  # noqa: PLC0415 - by delta-rs, which a diagnosis does without

    table = read_table(str(lake), FINDINGS)
    if table is None:
        if not is_lake(lake) and "://" not in str(lake):  # what is elsewhere was not looked at
            raise no_lake(lake)
        name = quote(str(lake))
        if (Path(str(lake)) / WRITTEN_BY_DIAGNOSE).exists():
            raise UserError(
                f"{lake} is damaged: its findings are gone. Run `wirelake diagnose FILE --lake {name}` again"
            )
        raise UserError(
            f"{lake} holds no findings yet: `wirelake stream --landing DIR --lake {name} --once` judges what is there"
        )
    from pipeline.analysis.fit import fit  # noqa: PLC0415

    return fit(table, FINDINGS)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of ``gold.findings``, the most severe first, and of these what still holds."""
    return sorted(rows, key=lambda row: (SEVERITIES.index(row["severity"]), _is_over(row), row["rule"], row["subject"]))


def _is_over(row: Mapping[str, Any]) -> bool:
    return row.get("state") == "resolved"


def show_findings(rows: Sequence[Row], console: Console, *, hidden: int = 0) -> None:
    """Print findings for a person; ``hidden`` is how many more there are that were not asked for."""
    if not rows:
        console.print(nothing(hidden))
    for row in rows:
        console.print(Padding(finding_text(row), (1, 0, 0, 0)))
    if rows:
        console.print(f"\n{pluralize(len(rows), 'finding')}: {by_severity(rows)}")


def finding_text(row: Mapping[str, Any], before: str = "") -> Group:
    """A row of ``gold.findings`` for a person, after ``before``."""
    head = headed(row, before)
    head.append(f"{row['rule']}  ", "bold")
    head.append(printable(row["subject"]), "bold magenta")
    details = Text()
    for label, text in _details(row):
        if text:
            details.append(f"{label}: ", "dim")
            details.append(f"{printable(text)}\n")
    details.rstrip()
    return Group(head, Padding(Text(printable(row["summary"] or "")), (0, 0, 0, 2)), Padding(details, (0, 0, 0, 2)))


def _details(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    exchanges = row["evidence"] or []
    shown = exchanges[:_EVIDENCE_SHOWN]
    more = len(exchanges) - len(shown)
    evidence = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return [*finding_sentences(row), ("evidence", evidence and f"exchanges {evidence}")]


def finding_sentences(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """When a finding was seen and what to do, each after its label."""
    return [
        ("seen", f"{_clock(row['first_ts'])} to {_clock(row['last_ts'])} UTC"), ("what to do", row["advice"]),
    ]  # fmt: skip


def _clock(ts: datetime) -> str:
    return ts.strftime("%Y-%m-%d %H:%M:%S")


def what_was_read(found: Diagnosis, stats: CaptureStats | None, *, is_whole: bool = True) -> str:
    """How much was read, in a line.

    Args:
        found: what it was judged by.
        stats: what the capture held; None: unknown.
        is_whole: whether all of what was given could be read.
    """
    looked = found.looked
    packets = f"{pluralize(stats.packets, 'packet')}, " if stats is not None else ""
    missing = [f"{pluralize(looked.bytes_lost, 'byte')} lost"] if looked.bytes_lost else []
    if stats is not None and stats.truncated:
        missing.append(f"{pluralize(stats.truncated, 'message')} cut off")
    if stats is not None and stats.kernel_dropped:
        missing.append(f"{pluralize(stats.kernel_dropped, 'packet')} dropped")
    if not is_whole or (stats is not None and not stats.is_whole):
        missing.append("not all of it could be read")
    lost = ", ".join(missing) or "no packets missing"
    from pipeline.capture.runs.summary import closings as closings_of  # noqa: PLC0415 - the capture's own words

    closings = "".join(f"; {closing}" for closing in closings_of(stats)) if stats is not None else ""
    span = ""
    if looked.first_us is not None and looked.last_us is not None:
        seconds = (looked.last_us - looked.first_us) / 1_000_000
        span = f", {moment(looked.first_us)} to {moment(looked.last_us)[11:]} UTC ({seconds:,.0f} s)"
    waiting = f" ({looked.pending:,} still without an answer)" if looked.pending else ""
    connections, exchanges = pluralize(looked.connections, "connection"), pluralize(looked.exchanges, "exchange")
    if not looked.connections and looked.unspoken:
        connections = f"{pluralize(looked.unspoken, 'connection')} without any message"
    return f"Read {packets}{connections}, {exchanges}{waiting}{span}, {lost}{closings}.{_copies(looked)}"


def _unspoken(looked: Looked) -> str:
    if not looked.unspoken:
        return ""
    return f" {pluralize(looked.unspoken, 'more connection')} carried no message."


def _copies(looked: Looked) -> str:
    if not looked.copies:
        return ""
    are = "connection is a copy of another" if looked.copies == 1 else "connections are copies of others"
    where = "behind address translation" if looked.translated else "by another agent"
    return f"\n{looked.copies:,} more {are}: the same packets seen again {where}."


def what_was_looked_at(found: Diagnosis) -> str:
    """What silence means: how much the rules have looked at."""
    from pipeline.analysis.rules.rule import all_rules  # noqa: PLC0415

    looked = found.looked
    return (
        f"Looked at {pluralize(looked.groups, 'group')}, {pluralize(looked.partitions, 'partition')}, "
        f"{pluralize(looked.clients, 'client')} and {pluralize(looked.servers, 'server')} by {len(all_rules())} rules."
        f"{_unspoken(looked)}"
        f"{_clusters_inferred(found.derived.catalog)}{_names_inferred(found.derived.catalog)}"
    )


def _clusters_inferred(catalog: ClusterCatalog) -> str:
    """Which servers belong to a cluster by inference."""
    servers = _some(server for (server, _), seen in catalog.brokers.items() if seen.is_inferred)
    return f" No message names the cluster of {servers}: what clients read and commit shows it." if servers else ""


def _names_inferred(catalog: ClusterCatalog) -> str:
    """Which topics have an id by inference."""
    names = _some(seen.value for seen in catalog.topics.values() if seen.is_inferred)
    return f" No message states the topic id of {names}: equal offsets or a subscription show it." if names else ""


def _some(texts: Iterable[str]) -> str:
    names = sorted(set(texts))
    more = f" and {pluralize(len(names) - _NAMES_SHOWN, 'other')}" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(printable, names[:_NAMES_SHOWN])) + more
