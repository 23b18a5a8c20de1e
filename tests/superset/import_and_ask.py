"""Runs in Superset's own environment: import the dashboard, let its database be another one, and ask each chart.

``python import_and_ask.py ARCHIVE ADDRESS``; the last line that it prints is JSON: of each chart how many rows came, or
what failed, and the charts that have a place on the dashboard.
"""

from __future__ import annotations

import json
import sys
import zipfile
from typing import Any

from superset.app import create_app

PASSWORD = "not-the-one-of-the-server"  # noqa: S105 - nobody listens there


def query_of(params: dict[str, Any]) -> dict[str, Any]:
    """What the chart's plug-in in the browser would ask for."""
    if params["viz_type"] == "table":
        return {"columns": params["all_columns"], "metrics": [], "row_limit": params["row_limit"]}
    return {
        "columns": [params["x_axis"], *params["groupby"]],
        "metrics": params["metrics"],
        "row_limit": params["row_limit"],
    }


def main(archive: str, address: str) -> None:
    app = create_app()
    with app.app_context():
        from flask import g  # noqa: PLC0415 - Superset's modules need the application
        from superset import db, security_manager  # noqa: PLC0415
        from superset.commands.chart.data.get_data_command import ChartDataCommand  # noqa: PLC0415
        from superset.commands.dashboard.importers.v1 import ImportDashboardsCommand  # noqa: PLC0415
        from superset.commands.importers.v1.utils import get_contents_from_bundle  # noqa: PLC0415
        from superset.common.query_context_factory import QueryContextFactory  # noqa: PLC0415
        from superset.models.core import Database  # noqa: PLC0415
        from superset.models.dashboard import Dashboard  # noqa: PLC0415

        g.user = security_manager.find_user("admin")
        with zipfile.ZipFile(archive) as bundle:
            contents = get_contents_from_bundle(bundle)
        ImportDashboardsCommand(contents, overwrite=True, passwords={"databases/Wirelake.yaml": PASSWORD}).run()
        db.session.query(Database).filter_by(database_name="Wirelake").one().set_sqlalchemy_uri(address)
        db.session.commit()
        dashboard = db.session.query(Dashboard).filter_by(slug="wirelake").one()
        found: dict[str, Any] = {}
        for chart in dashboard.slices:
            context = QueryContextFactory().create(
                datasource={"type": "table", "id": chart.datasource_id},
                queries=[query_of(json.loads(chart.params))],
                force=True,
            )
            try:
                (answer,) = ChartDataCommand(context).run()["queries"]
                found[chart.slice_name] = answer["rowcount"] if answer["error"] is None else answer["error"]
            except Exception as error:
                found[chart.slice_name] = repr(error)
        placed = [
            part
            for part in json.loads(dashboard.position_json).values()
            if isinstance(part, dict) and part["type"] == "CHART"
        ]
        print(
            json.dumps(
                {
                    "charts": found,
                    "placed": sorted(part["meta"]["sliceName"] for part in placed if part["meta"]["chartId"]),
                }
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
