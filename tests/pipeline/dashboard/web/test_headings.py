"""Each page of any lake has one heading of the first level and a title for the browser, also where there is nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.tables import CONNECTIONS, TABLES
from tests.captures.connections.record import HERE
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.dashboard.web.apps import PAGES, text_of
from tests.pipeline.rows import row, write

pytestmark = pytest.mark.slow


def _no_tables(lake: Path) -> None:
    lake.mkdir()


def _no_rows(lake: Path) -> None:
    for table in TABLES.values():
        write(lake, table, [])


def _one_table(lake: Path) -> None:
    write(lake, CONNECTIONS, [row(CONNECTIONS, connection_id="a", flow_id="a", first_ts=at(1), last_ts=at(2))])


def _only_connections(lake: Path) -> None:
    write_lake(lake, diagnose(read_inputs([str(HERE / "nobody_listens.pcap.zst")]), StreamSettings()).tables)


_LAKES = {make.__name__.strip("_"): make for make in (_no_tables, _no_rows, _one_table, _only_connections)}


@pytest.fixture(scope="module", params=_LAKES)
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare") / "lake"
    _LAKES[request.param](folder)
    return folder


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "parameters", [{}, {"incident": "gone", "exchange": "gone", "finding": "gone"}], ids=["", "gone"]
)
def test_each_page_has_one_heading_and_a_title(
    use: Any, lake: Path, page: str, parameters: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit  # noqa: PLC0415 - none for Python 3.10

    titles: list[str] = []
    configure = streamlit.set_page_config
    monkeypatch.setattr(
        streamlit, "set_page_config",
        lambda **given: (titles.append(given["page_title"]) if "page_title" in given else None, configure(**given)),
    )  # fmt: skip
    app = use(lake, page, **parameters)
    assert len(app.title) == 1, text_of(app)
    assert app.title[0].value.strip()
    assert titles[-1].endswith(" · Wirelake")
    assert len(titles[-1]) > len(" · Wirelake")


def test_a_connection_alone_is_an_incident_with_its_headline(use: Any, tmp_path: Path) -> None:
    _only_connections(tmp_path / "lake")
    app = use(tmp_path / "lake", "incident", range="all")
    assert len(app.title) == 1
    assert app.title[0].value != "Incident"
