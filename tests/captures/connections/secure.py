"""Connections by TLS whose failure is hidden: names that a certificate lacks, logins that are missing or refused."""

from __future__ import annotations

from tests.captures.connections import network
from tests.captures.connections.clients import java, kafka_python, together, write
from tests.captures.connections.listeners import login
from tests.captures.connections.story import Stage

_TRIES_S = 6.0
_WRONG = "mistaken"


def name_lacking(stage: Stage) -> None:
    """The broker's certificate lacks the name by which librdkafka, Java and kafka-python connect."""
    server, ca = f"kafka.example:{stage.port}", str(stage.folder / "ca.pem")
    network.knows(stage.folder, "kafka.example", stage.host)
    together(
        lambda: write(server, "strict", _TRIES_S, security_protocol="SSL", ssl_ca_location=ca),
        lambda: java(
            server, "strict-java", _TRIES_S, security_protocol="SSL", ssl_truststore_type="PEM",
            ssl_truststore_location=ca,
        ),
        lambda: kafka_python(server, "strict-python", _TRIES_S, security_protocol="SSL", ssl_cafile=ca),
    )  # fmt: skip


def name_lacking_tls12(stage: Stage) -> None:
    """The same by TLS 1.2, where alerts are not encrypted."""
    name_lacking(stage)


def login_lacking(stage: Stage) -> None:
    """librdkafka and Java connect by TLS, and do not log in where the listener wants it."""
    ca = str(stage.folder / "ca.pem")
    together(
        lambda: write(stage.server, "guest", _TRIES_S, security_protocol="SSL", ssl_ca_location=ca),
        lambda: java(
            stage.server, "guest-java", _TRIES_S, security_protocol="SSL", ssl_truststore_type="PEM",
            ssl_truststore_location=ca,
        ),
    )  # fmt: skip


def login_refused(stage: Stage) -> None:
    """librdkafka and Java log in by TLS with a wrong password."""
    ca = str(stage.folder / "ca.pem")
    together(
        lambda: write(
            stage.server, "mistaken", _TRIES_S, security_protocol="SASL_SSL", ssl_ca_location=ca,
            sasl_mechanism="PLAIN", sasl_username="app", sasl_password=_WRONG,
        ),
        lambda: java(
            stage.server, "mistaken-java", _TRIES_S, security_protocol="SASL_SSL", ssl_truststore_type="PEM",
            ssl_truststore_location=ca, sasl_mechanism="PLAIN", sasl_jaas_config=login("app", _WRONG),
        ),
    )  # fmt: skip
