"""A real Kafka broker with a listener for each recording, each with settings and certificates of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.brokers.kafka4 import Kafka4
from tests.captures.connections.story import Story

USER, CONTROLLER = "app", "CONTROLLER"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_LOGIN = "org.apache.kafka.common.security"


def broker(stories: Sequence[Story], folder: Path) -> Kafka4:
    """A broker that listens for these stories; certificates are in a folder."""
    mine = [one for one in stories if one.protocol]
    own = [f"{one.listener}://{one.server}" for one in mine]
    controllers = [one.listener for one in mine if one.protocol == CONTROLLER]
    told = [f"{one.listener}://{one.advertised or one.server}" for one in mine if one.protocol != CONTROLLER]
    protocols = [f"{one.listener}:{'PLAINTEXT' if one.protocol == CONTROLLER else one.protocol}" for one in mine]
    most = ",".join(f"{one.client}:{one.most_connections}" for one in mine if one.most_connections)
    lines = [
        f"listeners={','.join(('PLAINTEXT://{host}:{port}', 'CONTROLLER://127.0.0.1:{controller_port}', *own))}",
        f"advertised.listeners={','.join(('PLAINTEXT://{host}:{port}', *told))}",
        f"listener.security.protocol.map={','.join(('PLAINTEXT:PLAINTEXT', 'CONTROLLER:PLAINTEXT', *protocols))}",
        f"controller.listener.names={','.join(('CONTROLLER', *controllers))}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={folder / 'broker.pem'}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={folder / 'ca.pem'}",
        "sasl.enabled.mechanisms=PLAIN",
        f"max.connections.per.ip.overrides={most}",
        *(line for one in mine for line in _own(one)),
    ]
    return Kafka4("127.0.0.1", properties="\n".join(lines) + "\n")


def _own(story: Story) -> list[str]:
    name = f"listener.name.{story.listener.lower()}"
    lines = [f"{name}.{setting}" for setting in story.settings]
    if story.protocol.startswith("SASL"):
        known = f'{_LOGIN}.plain.PlainLoginModule required user_{USER}="{USER}";'
        lines.append(f"{name}.plain.sasl.jaas.config={known}")
    return lines


def login(user: str, password: str) -> str:
    """A Java client's credentials."""
    return f'{_LOGIN}.plain.PlainLoginModule required username="{user}" password="{password}";'


def certify(folder: Path, addresses: Sequence[str]) -> None:
    """Write the certificates: of an authority (`ca.pem`), and with its key of a broker at these addresses."""
    names = ",".join(f"IP:{address}" for address in addresses)
    authority(folder, "ca")
    ca, ca_key, own, own_key = (str(folder / name) for name in ("ca.pem", "ca.key", "own.pem", "own.key"))
    asked = str(folder / "asked.pem")
    _openssl("req", *_KEY, "-subj", "/CN=broker", "-keyout", own_key, "-out", asked)
    extra = folder / "names"
    extra.write_text(f"subjectAltName={names}\n")
    _openssl(
        "x509", "-req", "-in", asked, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "20", "-extfile",
        str(extra), "-out", own,
    )  # fmt: skip
    (folder / "broker.pem").write_text(Path(own_key).read_text() + Path(own).read_text() + Path(ca).read_text())


def authority(folder: Path, name: str) -> None:
    """Write the certificate and the key of an authority."""
    files = ("-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem"))
    _openssl("req", "-x509", *_KEY, "-days", "30", "-subj", f"/CN={name}", *files)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
