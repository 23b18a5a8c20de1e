"""``wirelake migrate``: brings a lake that an earlier release wrote to the layout of today."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer
from rich.text import Text

from pipeline.commands.lake import demand_lake, spark_session, steps
from pipeline.config.common_options import Conf, required, writing_settings
from pipeline.humanize import pluralize
from pipeline.lake.migration import TableMigration, migrations
from pipeline.tables import LAYOUT
from pipeline.terminal.console import Console


def migrate(
    lake: Annotated[str | None, typer.Option(help="The lake's folder.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    conf: Conf = None,
) -> None:
    """Bring a lake of an earlier release to the layout of this one.

    `stream`, `backfill`, `maintain` and `check` do it by themselves when they begin; `sql`, `findings` and the page
    read the lake as it is. An earlier release refuses the lake afterwards: to go back, copy the folder first.

    The exit code is 2 if there is no lake, a later release wrote it, another job works on it, or this machine lacks
    what Spark needs; --dry-run needs no Spark.

    Examples:

      wirelake migrate --lake lake --dry-run

      cp -a lake lake.before && wirelake migrate --lake lake
    """
    settings = writing_settings(conf, lake=lake)
    place = required(settings, "lake")
    demand_lake(place)
    found = migrations(place)
    console = Console()
    if not found:
        console.print(Text(f"{place} has layout {LAYOUT} already: there is nothing to do."), soft_wrap=True)
        return
    for line in lines_of(found):
        console.print(Text(line), soft_wrap=True)
    if dry_run:
        copy = f"cp -a {quote(place)} {quote(place.rstrip('/'))}.before"
        warning = "Nothing was changed. An earlier release refuses the lake afterwards; to go back, copy it first:"
        console.print(Text(f"{warning} {copy}"), soft_wrap=True)
        return
    with spark_session("wirelake migrate", settings) as spark, steps() as report:
        from pipeline.streaming.operations.migration import migrate as carry_over  # noqa: PLC0415 - loads Spark

        carry_over(spark, place, report)
    console.print(Text(f"{place} has layout {LAYOUT} now."), soft_wrap=True)


def lines_of(found: list[TableMigration]) -> list[str]:
    """What becomes of the tables, in words: those with steps of their own, then how many only state the layout."""
    lines = [f"{one.table.full_name} {step}." for one in found for step in one.steps]
    layouts = sorted({one.layout for one in found})
    from_layouts = " and ".join(map(str, layouts))
    return [*lines, f"{pluralize(len(found), 'table')} of layout {from_layouts} will state layout {LAYOUT}."]
