"""``wirelake notify``: sends incidents of a lake to a webhook, Slack or Alertmanager. Reads the lake without a JVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.analysis.rules.model import SEVERITIES
from pipeline.capture.packets.pipe import Stop, stop_on_signals
from pipeline.commands.findings import demand_known, read_incidents
from pipeline.config.common_options import Lake
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.metrics.log import Log
from pipeline.notifying.http_post import NotSentError, check_url, post, receiver
from pipeline.notifying.message_formats import MESSAGES, Shape, ended, is_open
from pipeline.notifying.sent_state import Sent, default_file
from pipeline.terminal.console import Console

URL_VARIABLE = "WIRELAKE_NOTIFY_URL"
_ALERTS_PATH = "/api/v2/alerts"
Rows = Sequence[Mapping[str, Any]]


def notify(
    lake: Lake,
    to: Annotated[
        str | None,
        typer.Option(
            envvar=URL_VARIABLE,
            metavar="URL",
            show_envvar=False,
            help=f"The receiver. Give an address that holds a secret in {URL_VARIABLE}: other users see command lines.",
        ),
    ] = None,
    shape: Annotated[
        Shape,
        typer.Option(
            help="json: an object for each change; slack: a text, which many chats take; alertmanager: what is open, "
            "at each look, to its API v2."
        ),
    ] = Shape.JSON,
    severity: Annotated[
        str, typer.Option(help="The least severe that is sent: critical, warning or info.")
    ] = "critical",
    every: Annotated[float, typer.Option(min=1, help="Seconds from one look at the lake to the next.")] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, then end: for cron.")] = False,
    page: Annotated[
        str | None, typer.Option(metavar="URL", help="Where people reach `wirelake dashboard`, for links.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keeps what was sent; by default one in ~/.local/state/wirelake."),
    ] = None,
) -> None:
    """Send incidents to a webhook, Slack or Alertmanager.

    It sends an incident when it begins, recurs, gets worse or ends, unless somebody muted it on the page.

    Each change is sent once, also after a restart: a file keeps what was sent. The first run sends ongoing incidents
    only. A message that the receiver does not accept is sent again, four times at once and then at each look. Messages
    hold addresses and names of topics, groups and clients, and no payload.

    The exit code is 2 if there is no lake or the options are wrong; with --once also if the receiver did not accept a
    message.

    Examples:

      wirelake notify --lake lake --to https://example.org/hook --once

      WIRELAKE_NOTIFY_URL=https://hooks.slack.com/services/… wirelake notify --lake lake --shape slack

      wirelake notify --lake lake --shape alertmanager --to http://alertmanager:9093 --page https://dash.example.org
    """
    if to is None:
        raise UserError(f"name the receiver: --to URL, or in the environment as {URL_VARIABLE}")
    demand_known((), (severity,))
    wanted, url = SEVERITIES[: SEVERITIES.index(severity) + 1], check_url(to)
    sent, log = Sent(state or default_file(str(lake), url, shape.value)), Log(Console(stderr=True))
    look = _Look(str(lake), url, shape, page, sent, log)

    def take() -> bool:
        found = [one for one in read_incidents(lake)[0] if one["severity"] in wanted and not one["is_muted"]]
        taken, is_all = look.take(found)
        if taken:
            log.write(f"{pluralize(taken, 'message')} to {receiver(url)}")
        return is_all

    if once:
        if not take():
            raise typer.Exit(2)
        return
    with stop_on_signals() as stop:
        _repeat(take, every, stop, log)


def _repeat(take: Callable[[], bool], every: float, stop: Stop, log: Log) -> None:
    """Look again and again until a stop is asked for. A lake that cannot be read for a while ends nothing."""
    has_read = False
    while not stop.asked():
        try:
            take()
            has_read = True
        except UserError as error:
            if not has_read:
                raise
            log.write(f"error: {error}")
        until = time.monotonic() + every
        while not stop.asked() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))


class _Look:
    """One look at the lake after the other.

    Args:
        lake, url, shape, page: see :func:`notify`.
        sent: what was sent before.
        log: takes a sentence about a message that is not sent.
    """

    def __init__(self, lake: str, url: str, shape: Shape, page: str | None, sent: Sent, log: Log) -> None:
        self._lake, self._url, self._shape, self._page = lake, url, shape, page
        self._sent, self._log = sent, log

    def take(self, incidents: Rows) -> tuple[int, bool]:
        """Send what is new, and what waits; how many messages were taken, and whether all were."""
        changes = self._sent.changes(incidents)
        if self._shape is Shape.ALERTMANAGER:
            self._wait(ended([one.row for one in changes if one.kind == "resolved"], self._page))
            taken, is_all = self._send_alerts(is_open(incidents, self._page))
        else:
            make = MESSAGES[self._shape]
            self._wait([make(one, self._lake, self._page) for one in changes])
            taken, is_all = self._send_each()
        self._sent.save()
        return taken, is_all

    def _wait(self, messages: Sequence[Any]) -> None:
        if dropped := self._sent.wait(messages):
            self._log.write(f"error: {pluralize(dropped, 'message')} dropped: too many wait for {receiver(self._url)}")
        self._sent.save()  # before the first is sent: whatever ends us, they are sent

    def _send_each(self) -> tuple[int, bool]:
        taken, is_all = 0, True
        while self._sent.waiting:
            try:
                post(self._url, self._sent.waiting[0])
                taken += 1
            except NotSentError as error:
                is_all = False
                self._log.write(f"error: {receiver(self._url)}: {error}")
                if not error.is_refused:
                    break  # it is tried again at the next look, those behind it after it
            del self._sent.waiting[0]
            self._sent.save()
        return taken, is_all

    def _send_alerts(self, of_now: Sequence[Any]) -> tuple[int, bool]:
        """Alertmanager takes an alert again that it has, so all go together."""
        made, url = [*of_now, *self._sent.waiting], self._url.rstrip("/")
        if not made:
            return 0, True
        try:
            post(url if url.endswith(_ALERTS_PATH) else f"{url}{_ALERTS_PATH}", made)
        except NotSentError as error:
            self._log.write(f"error: {receiver(self._url)}: {error}")
            return 0, False
        self._sent.waiting.clear()
        return len(made), True
