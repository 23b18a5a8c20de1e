"""Reference pages, made from what the program itself goes by: tables, rules, settings, commands, keys of JSON.

``python -m website.reference`` writes them into ``docs/reference``, writes what the README and ``conf/local.yaml`` say
of rules, and prints what the pages of ``docs/rules`` lack, if anything; tests say when that was not done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.rule import Rule, all_rules, settings_of
from pipeline.config.settings import Settings
from pipeline.dashboard.views import views
from pipeline.tables import TABLES, Table
from website import bi_dashboards
from website.claims import claims_page
from website.commands import commands_page
from website.error_codes import error_codes_page
from website.json_keys import json_page
from website.markdown import cell, code, table
from website.python_page import python_page
from website.rule_documents import ROOT, documents, problems
from website.settings_page import default, settings_page

FOLDER = ROOT / "docs" / "reference"
_MADE = "<!-- Made from the code by `python -m website.reference`: change it there. -->"


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    texts = {
        "tables.md": tables_page(),
        "rules.md": rules_page(),
        "settings.md": settings_page(),
        "cli.md": commands_page(),
        "json.md": json_page(),
        "error-codes.md": error_codes_page(),
        "claims.md": claims_page(),
        "python.md": python_page(),
    }
    made = {name: f"{_MADE}\n\n{text.rstrip()}\n" for name, text in texts.items()}
    return {**made, "settings.schema.json": json.dumps(Settings.model_json_schema(), indent=1) + "\n"}


def write() -> None:
    """Write all pages, and remove what is none of them."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for file in FOLDER.iterdir():
        if file.name not in made:
            file.unlink()
    for path, text in documents().items():
        (ROOT / path).write_text(text, encoding="utf-8")


def tables_page() -> str:
    """What is in a lake."""
    parts = [
        "# Tables",
        "Each is a Delta table at `<lake>/<schema>/<name>`; types are Spark's. Times are UTC, offsets positions in "
        "Kafka's log. `wirelake describe TABLE` prints the same; [adding one](../architecture.md) begins in "
        "[`pipeline/tables`](../../pipeline/tables).",
        table(("table", "one row is"), ((f"[`{n}`](#{_anchor(n)})", cell(t.comment)) for n, t in TABLES.items())),
        *(_table(one) for one in TABLES.values()),
        "## Views",
        "`wirelake sql` and the page know them by their names alone; `wirelake describe VIEW` prints their columns, "
        "with `--sql` the query.",
        table(("view", "the question that it answers"), ((code(v.name), cell(v.question)) for v in views())),
    ]
    return "\n\n".join(parts)


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _table(one: Table) -> str:
    facts = [f"No two rows share {_names(one.key)}."]
    if one.partition_by:
        facts.append(f"Folders by {_names(one.partition_by)}.")
    kept = "forever" if one.keep_days is None else f"{one.keep_days} days"
    facts.append(f"Rows are kept {kept}" + ("." if one.keep_days is None else " unless the settings state otherwise."))
    rows = ((code(c.name), code(c.type), "" if c.nullable else "never null", cell(c.comment)) for c in one.columns)
    return f"## {one.full_name}\n\n{one.comment}\n\n{' '.join(facts)}\n\n" + table(("column", "type", "", "what"), rows)


def _names(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)


def rules_page() -> str:
    """What is found, what each rule goes by, and what it advises."""
    rules = all_rules()
    rows = (
        (
            f"[`{rule.name}`](../rules/{rule.name}.md)",
            cell(rule.title),
            rule.protocol,
            ", ".join(rule.severities),
            cell(rule.meaning),
            f"[thresholds and advice](#{rule.name})",
        )
        for rule in rules
    )
    intro = (
        "# Rules\n\nA rule has a page that says what it means, what it rests on, what to do and when it does not "
        "fire. Findings are in [`gold.findings`](tables.md#goldfindings); those that share a cause are one "
        "[incident](../incidents.md). [A rule of your own](../adding-a-rule.md) is a file. In advice, `{names}` in "
        "braces are filled in."
    )
    overview = table(("rule", "title", "protocol", "severity", "what is wrong then", "what it goes by"), rows)
    return "\n\n".join([intro, overview, *map(_rule, rules)])


def _rule(rule: type[Rule]) -> str:
    rows = (
        (f"[`{name}`](settings.md#streamfindings{name})", default(field), f"{cell(field.description or '')}.")
        for name, field in settings_of(rule).items()
    )
    thresholds = table(("threshold", "default", "what"), rows) if settings_of(rule) else "It has no thresholds."
    in_parts = any(text.startswith("Fix:") for text in rule.advice)
    title = (
        "Advice, one of *Now* with one of *Fix*:"
        if in_parts
        else "Advice, one of these:"
        if len(rule.advice) > 1
        else "Advice:"
    )
    texts = "\n".join(f"- {cell(text)}" for text in rule.advice)
    by_code = "\n\nWhat the error code asks for is in the [table of error codes](error-codes.md)."
    return f"## {rule.name}\n\n{thresholds}\n\n{title}\n\n{texts}{by_code if BY_CODE in rule.advice else ''}"


if __name__ == "__main__":
    write()
    bi_dashboards.write()
    if missing := problems():
        sys.exit("\n".join(missing))
