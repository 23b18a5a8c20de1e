"""What a lake of an earlier layout still has to become: read from the logs of its tables, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from pipeline.humanize import listed, pluralize
from pipeline.lake.delta_log import delta_table, unreadable
from pipeline.lake.former_layout import is_former
from pipeline.lake.layout import demand_layout
from pipeline.tables import BODY_NAMES, EXCHANGES, LAYOUT, LAYOUT_PROPERTY, TABLES, Table


@dataclass(frozen=True, slots=True)
class TableMigration:
    """What becomes of a table.

    Attributes:
        layout: that it has now.
        steps: what is done to it, each a sentence without its subject; none: it only states the new layout.
    """

    table: Table
    layout: int
    steps: tuple[str, ...]


def migrations(lake: str) -> list[TableMigration]:
    """The tables of a lake that are not yet as this release writes them; none: all are.

    Args:
        lake: the lake's folder or URL.

    Raises:
        UserError: a table is of a later layout, or cannot be read.
    """
    return [found for table in TABLES.values() if (found := _migration(lake, table)) is not None]


def _migration(lake: str, table: Table) -> TableMigration | None:
    held, is_moved = _held(lake, table), False
    if held is None and table.former is not None:
        held, is_moved = _held(lake, table.former), True
    if held is None:
        return None
    properties = held.metadata().configuration
    demand_layout(lake, properties)
    names = {field.name for field in held.schema().fields}
    steps = list(_steps(held, table, names, is_former=is_former(properties)))
    if is_moved and table.former is not None:
        steps.insert(0, f"moves from {table.former.path}")
    layout = int(properties.get(LAYOUT_PROPERTY) or 1)
    return TableMigration(table, layout, tuple(steps)) if steps or layout != LAYOUT else None


def _steps(held: DeltaTable, table: Table, names: set[str], *, is_former: bool) -> Iterator[str]:
    renamed = [one for one in table.columns if one.former_name is not None and one.former_name in names]
    if is_former and any(one.has_former for one in table.columns):
        of_columns = f"{pluralize(len(renamed), 'column')} and for " if renamed else ""
        yield f"is rewritten with the names of today for {of_columns}its states"
    known = names | {one.name for one in renamed}
    if table is EXCHANGES and BODY_NAMES & names:
        actions = held.get_add_actions(flatten=True)
        rows = sum(one or 0 for one in actions.column("num_records").to_pylist())
        yield f"is rewritten without bodies ({pluralize(rows, 'row')}), which stay in bronze.frames"
        return
    if added := [one.name for one in table.columns if one.name not in known]:
        yield f"gets {pluralize(len(added), 'column')} that it lacks: {listed(added)}"


def _held(lake: str, table: Table) -> DeltaTable | None:
    try:
        return delta_table(lake, table)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError) as error:
        raise unreadable(lake, table, error) from error
