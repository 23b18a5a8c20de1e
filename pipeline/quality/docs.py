"""Great Expectations' Data Docs of a run as a folder of HTML that asks no other host: its renderer, our style.

The pages that Great Expectations writes by itself load styles, fonts and scripts from the net, so its page around the
content is replaced; sections, tables and texts are its own. Nothing in them is a value of the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from html import escape
from pathlib import Path
from typing import Any

from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView
from jinja2 import ChoiceLoader, DictLoader

from pipeline.errors import UserError
from pipeline.quality.model import QualityResult, Report, Run, critical_failures
from pipeline.quality.rows_sql import command

_MARK = "Written by wirelake check"
_OF_ITS_SITE = re.compile(r'<a href="\.\./[^"]*" *>([^<]*)</a>')
"""A link to the page of the suite, which Great Expectations' own site has."""
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --bad: #c62828; --good: #2e7d32; --mild: #b26a00 }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #81c784; --mild: #ffb74d } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
code { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
.alert { margin-top: 2rem } h5 { font-size: 1.2rem; margin: 0 } h6 { font-size: 1rem; margin: 0 }
.badge { border: 1px solid var(--line); border-radius: .3rem; padding: 0 .3rem }
.critical, .text-danger { color: var(--bad) } .text-success, .ok { color: var(--good) }
.warning, .text-warning { color: var(--mild) }
.fa-check-circle::before { content: "holds" } .fa-times::before { content: "fails" }
.fa-exclamation-triangle::before { content: "not checked" } i { font-style: normal }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="{{ mark }}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ title }}</title>
<style>{{ style }}</style></head><body>
{% if home %}<p><a href="{{ home }}">All tables</a></p>{% endif %}<h1>{{ title }}</h1>
"""
_TABLE_PAGE = f"""{_PAGE}{{% for section in sections %}}{{% set section_loop = loop -%}}{{% include 'section.j2' %}}
{{% endfor %}}</body></html>
"""
_INDEX = f"""{_PAGE}<p>{{{{ summary }}}}</p>
<table><thead><tr><th>table</th><th class="number">rows</th><th class="number">checks</th><th class="number">failed</th>
<th></th></tr></thead><tbody>{{% for one in tables %}}
<tr><td>{{% if one.page %}}<a href="{{{{ one.page }}}}">{{{{ one.name }}}}</a>
{{% else %}}{{{{ one.name }}}}{{% endif %}}</td>
<td class="number">{{{{ one.rows }}}}</td><td class="number">{{{{ one.checks }}}}</td>
<td class="number">{{{{ one.failed }}}}</td><td class="{{{{ one.verdict }}}}">{{{{ one.verdict }}}}</td></tr>
{{% endfor %}}</tbody></table>
{{% for heading, results in lists %}}{{% if results %}}<h2>{{{{ heading }}}}</h2><ul>{{% for one in results %}}
<li><span class="{{{{ one.severity }}}}">{{{{ one.severity }}}}</span> {{{{ one.table_name }}}}: {{{{ one.message }}}}
{{% if one.rows_sql %}}<br><code>{{{{ command(one.rows_sql) }}}}</code>{{% endif %}}</li>
{{% endfor %}}</ul>{{% endif %}}{{% endfor %}}</body></html>
"""


def check_folder(folder: Path) -> None:
    """Look whether Data Docs may be written there.

    Raises:
        UserError: it holds something else, or is no folder.
    """
    index = folder / "index.html"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file. Name a folder for Data Docs, --docs DIR.")
    if folder.is_dir() and any(folder.iterdir()) and not (index.is_file() and _MARK in index.read_text("utf-8")):
        raise UserError(f"{folder} holds other files. Name a folder that is empty or not there yet, --docs DIR.")


def write_docs(folder: Path, run: Run, results: Sequence[QualityResult]) -> None:
    """Write the Data Docs of a run: ``index.html`` and a page for each table.

    Args:
        folder: made if it is not there; pages of an earlier run are replaced.
        run: with what Great Expectations reported.
        results: of the run.

    Raises:
        UserError: the folder holds something else, or cannot be written.
    """
    check_folder(folder)
    view = DefaultJinjaPageView()
    view.env.loader = ChoiceLoader(
        [DictLoader({"page.j2": _TABLE_PAGE, "collapse.j2": "", "index.j2": _INDEX}), view.env.loader]
    )
    view.env.autoescape = False  # as Great Expectations has it: what it renders is markup
    frame = {"style": _STYLE, "mark": _MARK}
    names = list(dict.fromkeys(result.table_name for result in results))
    pages = {name: _rendered(view, name, run.reports, frame) for name in names}
    index = _index(view, run, results, [name for name in names if pages[name] is not None], frame)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.html"):
            old.unlink()
        (folder / "index.html").write_text(index, encoding="utf-8")
        for name, page in pages.items():
            if page is not None:
                (folder / f"{name}.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write Data Docs to {folder}: {error.strerror}. Name another folder.") from error


def _rendered(view: Any, name: str, reports: Iterable[Report], frame: dict[str, str]) -> str | None:
    """The page of one table: its own suite, and what other tables state of it."""
    mine = [report for report in reports if report.table_name == name]
    if not mine:
        return None
    whole = deepcopy(mine[0].validation)
    whole.results = [outcome for report in mine for outcome in _described(report)]
    held = sum(bool(outcome.success) for outcome in whole.results)
    count = len(whole.results)
    whole.success = held == count
    whole.statistics = {
        "evaluated_expectations": count,
        "successful_expectations": held,
        "unsuccessful_expectations": count - held,
        "success_percent": 100.0 * held / count,
    }
    document = ValidationResultsPageRenderer().render(whole)
    page = str(view.render(document, title=escape(name), home="index.html", **frame))
    return _OF_ITS_SITE.sub(r"\1", page)


def _described(report: Report) -> Iterable[Any]:
    """Outcomes with our words, and the query that lists the rows."""
    for outcome, result in zip(report.validation.results, report.results, strict=True):
        described = deepcopy(outcome)
        text = escape(f"{result.severity}: {result.message}")
        if result.rows_sql is not None:
            text += f"<br><code>{escape(command(result.rows_sql))}</code>"
        described.expectation_config.description = text.replace("$", "&#36;")
        described.exception_info = {"raised_exception": False, "exception_message": None, "exception_traceback": None}
        yield described


def _index(view: Any, run: Run, results: Sequence[QualityResult], pages: list[str], frame: dict[str, str]) -> str:
    tables = []
    for name in dict.fromkeys(result.table_name for result in results):
        mine = [result for result in results if result.table_name == name]
        failed = [result for result in mine if not result.success]
        rows = [result.rows_checked for result in mine if result.rows_checked is not None]
        verdict = "critical" if critical_failures(failed) else "warning" if failed else "ok"
        page = f"{name}.html" if name in pages else None
        tables.append(
            {"name": name, "page": page, "rows": f"{rows[0]:,}" if rows else "", "checks": len(mine),
             "failed": len(failed) or "", "verdict": verdict}
        )  # fmt: skip
    failed = [result for result in results if not result.success]
    when = f"{run.run_time:%Y-%m-%d %H:%M} UTC"
    summary = f"{when}: {len(results)} checks, {len(failed)} failed, {len(critical_failures(failed))} of them critical."
    lists = [
        ("Failed", failed),
        ("Not judged", [one for one in results if one.success and "not judged" in one.message]),
    ]
    template = view.env.overlay(autoescape=True).get_template("index.j2")
    return str(
        template.render(title="Data quality", summary=summary, tables=tables, lists=lists, command=command, **frame)
    )
