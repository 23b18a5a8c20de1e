"""``wirelake capture``: packets into the landing zone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from decoder.protocols import protocols
from pipeline.capture.landing.bounded import BoundedStore
from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.landing.patience import DEFAULT_STORE_TIMEOUT_S
from pipeline.capture.packets.packet import CaptureError
from pipeline.capture.packets.pipe import Stop, stop_on_signals
from pipeline.capture.packets.sources import STDIN
from pipeline.capture.reading_options import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog, show_progress
from pipeline.capture.runs.agent_metrics import reporting
from pipeline.capture.runs.follow import follow_ring
from pipeline.capture.runs.live import BUFFER_MIB, Tap, capture_live
from pipeline.capture.runs.options import RunOptions
from pipeline.capture.runs.payload import KEY_VARIABLE, Payload, chosen_payload
from pipeline.capture.runs.reading import read_capture
from pipeline.capture.runs.run import PUBLISH_EVERY_S
from pipeline.capture.runs.summary import print_json, print_summary
from pipeline.capture.tcp.tracker import IDLE_US
from pipeline.config.common_options import Conf, required, writing_settings
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.metrics.endpoint import Exposed, MetricsOption, serving
from pipeline.metrics.log import Log, LogFormat, LogFormatOption
from pipeline.terminal.console import Console

capture_app = typer.Typer(no_args_is_help=True)

_SILENT_S = 30.0
"""An agent that has not continued for so long is not ready, s: its landing zone is full or out of reach."""

_PORT = re.compile(r"(\d{1,5})(?:=(\w+))?")


PayloadOption = Annotated[
    Payload | None,
    typer.Option(
        show_default="lengths",
        help="What of record keys, values and header values lands: lengths (zeros in their place), hash (a keyed hash "
        "in their place), none (not even the batch headers) or full. Credentials never do.",
    ),
]
KeyFileOption = Annotated[
    str | None,
    typer.Option("--payload-key-file", help=f"Key of --payload hash; without it that in {KEY_VARIABLE}."),
]
Landing = Annotated[
    str | None,
    typer.Option(help="Landing zone: a directory (made if it is not there), or a URL as s3://bucket/prefix."),
]
StoreTimeout = Annotated[
    float, typer.Option(min=0, help="Seconds to wait for a landing zone that is full or out of reach.")
]
IdleTimeout = Annotated[
    float, typer.Option(min=1, help="Seconds without a packet after which a connection is taken to have ended.")
]
AgentId = Annotated[
    str | None,
    typer.Option(
        show_default="local", help="Name of this agent; part of the ids, so keep it the same for the same source."
    ),
]
PublishEvery = Annotated[
    float, typer.Option(min=0.1, help="Publish the frames of a running capture at least this often.")
]
MostLying = Annotated[int | None, typer.Option(hidden=True, min=1, help="For BoundedStore, bytes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]


class _Chosen(NamedTuple):
    """Where frames land, and what an agent goes by."""

    landing: str
    options: RunOptions


@capture_app.callback()
def capture() -> None:
    """Capture packets into the landing zone.

    For a diagnosis alone `wirelake diagnose FILE` needs none.

    Examples:

      wirelake capture read incident.pcap --landing landing

      wirelake capture live --interface any --port 9092 --landing landing
    """


@capture_app.command()
def read(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Captures: pcap or pcapng, also .gz/.zst; a directory of them; '-' for stdin."),
    ] = None,
    landing: Landing = None,
    follow: Annotated[
        str | None,
        typer.Option(help="Keep reading this directory, into which tcpdump -C/-G or dumpcap -b rotates files."),
    ] = None,
    until_idle: Annotated[
        float | None, typer.Option(min=0, help="With --follow: end when there was nothing new for this many seconds.")
    ] = None,
    agent_id: AgentId = None,
    payload: PayloadOption = None,
    payload_key_file: KeyFileOption = None,
    publish_every: PublishEvery = PUBLISH_EVERY_S,
    idle_timeout: IdleTimeout = IDLE_US / 1e6,
    store_timeout: StoreTimeout = DEFAULT_STORE_TIMEOUT_S,
    allow_truncated: AllowTruncated = None,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
    most_lying: MostLying = None,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """Read capture files into the landing zone. Reading a file again changes nothing.

    Files that follow each other in time are pieces of one capture: connections continue. A file that cannot be read is
    left out; the other files land, and the exit code is 2. A truncated or damaged file lands up to its last complete
    packet, unless --strict is given. Standard input lands as it arrives.

    With --follow the newest file is read as it grows; a compressed one when a newer one exists, or when it has not
    grown for ten seconds. Progress is remembered in the landing zone under the agent's id: run it again and it
    continues. SIGINT and SIGTERM end it cleanly.

    Examples:

      wirelake capture read incident.pcap --landing landing

      wirelake capture read /var/captures --landing landing --agent-id broker-host-1 --json

      wirelake capture read incident.pcap --tls-keylog keys.log --landing landing

      tcpdump -i any -U -w - port 9092 | wirelake capture read - --landing landing

      ssh broker-1 sudo tcpdump -i any -U -w - port 9092 | wirelake capture read - --landing landing --agent-id broker-1

      wirelake capture read incident.pcap --landing landing --payload hash --payload-key-file payload.key

      wirelake capture read --follow /var/ring --landing landing --agent-id broker-1

      wirelake capture read --follow /var/ring --conf /etc/wirelake/agent.yaml    # landing, agent_id, payload_policy, …

      wirelake capture read incident.pcap --landing "s3://bucket/landing?region=eu-west-1"

      wirelake capture read incident.pcap --landing "s3://bucket/landing?endpoint=http://minio:9000"

    Credentials for S3 come from the environment (AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) or ~/.aws.
    """
    if bool(files) == bool(follow):
        raise UserError("name capture files, or a directory by --follow: one of both")
    if until_idle is not None and not follow:
        raise UserError("--until-idle needs --follow: files and pipes end by themselves")
    if follow and (tls_keylog or tls_embedded_keys):
        raise UserError(
            "--tls-keylog and --tls-embedded-keys need capture files: a ring that is still written cannot be decrypted"
        )
    chosen = _chosen(conf, landing, agent_id, payload, payload_key_file, idle_timeout, publish_every, store_timeout)
    errors = Console(stderr=True)
    log = Log(errors, log_format)
    failed: list[CaptureError] = []

    def on_error(error: CaptureError) -> None:
        failed.append(error)
        log.write(f"error: {error}")

    def on_problem(problem: str) -> None:
        log.write(f"warning: {problem}")

    store = chosen.landing if most_lying is None else _bounded(chosen.landing, most_lying, on_problem)
    is_endless = follow or STDIN in (files or [])
    exposed = Exposed(_SILENT_S)
    with (
        stop_on_signals() if is_endless else nullcontext(Stop()) as stop,
        serving(metrics, exposed, log.write),
        show_progress(errors, ", ".join(files or [follow or ""])) as shown,
    ):
        show = reporting(exposed, log, shown) if is_endless or metrics else shown
        if follow:
            stats = follow_ring(
                follow,
                store,
                until_idle_s=until_idle,
                stop=stop,
                on_progress=show,
                on_problem=on_problem,
                **chosen.options,
            )
        else:
            stats = read_capture(
                files or [],
                store,
                allow_truncated=allow_truncated,
                tls_keylog=tls_keylog,
                tls_embedded_keys=tls_embedded_keys,
                stop=stop,
                on_progress=show,
                on_error=on_error,
                **chosen.options,
            )
    if as_json:
        print_json(stats)
    elif stats.packets or not failed:
        print_summary(stats)
    if failed or stats.damaged_files:
        raise typer.Exit(2)


def _chosen(
    conf: Path | None,
    landing: str | None,
    agent_id: str | None,
    payload: Payload | None,
    payload_key_file: str | None,
    idle_timeout: float,
    publish_every: float,
    store_timeout: float,
) -> _Chosen:
    """What the command line gives, else the settings. Times are seconds."""
    settings = writing_settings(conf, payload_policy=payload and payload.value, payload_key_file=payload_key_file)
    policy, field_hash = chosen_payload(settings)
    return _Chosen(
        required(settings, "landing") if landing is None else landing,
        RunOptions(
            agent_id=settings.agent_id if agent_id is None else agent_id,
            payload_policy=policy,
            field_hash=field_hash,
            idle_us=int(idle_timeout * 1e6),
            work=settings.work.limits(),
            publish_every_s=publish_every,
            store_timeout_s=store_timeout,
        ),
    )


def _bounded(landing: str, most_bytes: int, on_problem: Callable[[str], None]) -> BoundedStore:
    def on_wait() -> None:
        on_problem(
            f"more comes than can be judged: {most_bytes >> 20:,} MiB of it wait in the temporary folder, and reading "
            "waits, too. Whoever writes into a pipe may lose packets meanwhile; what a ring loses unread is reported"
        )

    return BoundedStore(open_store(landing), most_bytes, on_wait)


@capture_app.command()
def live(
    interface: Annotated[str, typer.Option(help="Name of the interface; 'any' for all of them (Linux).")],
    landing: Landing = None,
    port: Annotated[
        list[str] | None,
        typer.Option(help="TCP port, e.g. 9092 or 9092=kafka; may be given several times. Without it: all TCP."),
    ] = None,
    duration: Annotated[float | None, typer.Option(min=0, help="End after this many seconds.")] = None,
    buffer_mib: Annotated[
        int, typer.Option(min=1, max=2047, help="Size of the kernel's buffer; raise it for bursts.")
    ] = BUFFER_MIB,
    agent_id: AgentId = None,
    payload: PayloadOption = None,
    payload_key_file: KeyFileOption = None,
    publish_every: PublishEvery = PUBLISH_EVERY_S,
    idle_timeout: IdleTimeout = IDLE_US / 1e6,
    store_timeout: StoreTimeout = DEFAULT_STORE_TIMEOUT_S,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """Capture an interface into the landing zone until Ctrl-C (or SIGTERM). Only tcpdump (or dumpcap) is privileged.

    The protocol is recognised by content; a name after a port only tells the reader of the command. The exit code is 2
    if the interface cannot be captured, or the landing zone cannot be written.

    Examples:

      wirelake capture live --interface any --port 9092 --landing landing

      wirelake capture live --interface eth0 --port 9092=kafka --port 27017=mongodb --landing landing --duration 60

      wirelake capture live --interface any --conf /etc/wirelake/agent.yaml

      wirelake capture live --interface any --port 9092 --landing landing --metrics 9464    # Prometheus: :9464/metrics
    """
    tap = Tap(interface, tuple(_port(text) for text in port or []), buffer_mib)
    chosen = _chosen(conf, landing, agent_id, payload, payload_key_file, idle_timeout, publish_every, store_timeout)
    errors = Console(stderr=True)
    log, exposed = Log(errors, log_format), Exposed(_SILENT_S)
    with (
        stop_on_signals() as stop,
        _deadline(stop, duration),
        serving(metrics, exposed, log.write),
        show_progress(errors, interface) as shown,
    ):
        show = reporting(exposed, log, shown)
        stats = capture_live(
            tap,
            chosen.landing,
            stop=stop,
            on_start=lambda command: log.write(f"capturing: {' '.join(command)}; Ctrl-C ends it"),
            on_progress=show,
            **chosen.options,
        )
    if stats.kernel_dropped:
        log.write(
            f"warning: the kernel dropped {pluralize(stats.kernel_dropped, 'packet')}: what they held is missing. "
            "Give --port, a larger --buffer-mib, or capture to files (tcpdump -w, dumpcap -b) and read those"
        )
    if as_json:
        print_json(stats)
    else:
        print_summary(stats)


def _port(text: str) -> int:
    found = _PORT.fullmatch(text)
    if found is None or not 0 < int(found[1]) < 65_536 or found[2] not in (None, *protocols()):
        raise UserError(f"--port {text}: give a TCP port, alone or with its protocol, e.g. 9092=kafka or 27017=mongodb")
    return int(found[1])


@contextmanager
def _deadline(stop: Stop, seconds: float | None) -> Iterator[None]:
    """Ask for a stop when the time is up."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, stop.ask)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
