"""Inputs of public reports, kept beside the checkout, are judged as their reporters would expect.

Each folder of ``../shared/cases`` stands for a kind whose own tests use made or recorded input. Where the folder is
missing (it is not part of the repository) these tests are skipped.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from tests.paths import ROOT

CASES = ROOT.parent / "shared" / "cases"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CASES.is_dir(), reason="the cases are beside the checkout where they are kept"),
]


class Case(NamedTuple):
    """What ``diagnose`` must print of a capture, on one line each, and what not; with which exit code."""

    path: str
    code: int
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


NOTHING = "Nothing found that looks wrong."
UNJUDGED = "Nothing was judged: "

LOOPS = {
    "compacted_gap_loop.pcap": "from offset 484158 again and again and gets only batches without records, up to 484168",
    "loop2_commits_both.pcap": "from offset 217 again and again and gets the same records, up to 219, each time",
    "loop_empty_batch.pcap": "and gets only batches without records, up to 232",
    "loop_empty_hw_ahead.pcap": "and gets nothing (483 records wait)",
    "loop_partial_message.pcap.zst": "and gets a piece of 10,240 bytes of a message, cut off at its fetch limit",
    "loop_same_records.pcap": "and gets the same records, up to 219, each time (483 records wait)",
}
"""By capture what comes back."""
JUDGED = [
    Case("hostile-apiversions/hostile_apiversions.pcap", 0, (NOTHING,)),
    Case("snaplen-crash/crash_min.pcap", 0, ("4 messages cut off",), (NOTHING,)),
    Case("snaplen-crash/healthy_snap256.pcap", 0, ("189 messages cut off",), (NOTHING,)),
    Case("snaplen-crash/share_groups_cut.pcap", 1, ("cut off", "acknowledged nothing of orders"), (NOTHING,)),
    Case("plaintext-to-tls-listener/real_librdkafka.pcap", 0,
         ("WARNING 127.0.0.1:29196 closes each connection before it answers anything", "security.protocol"),
         (UNJUDGED, "restart", "hangs")),
    Case("offset-near-2-63/stopped_3.pcap", 1, ("stopped",), ("internal error",)),
    Case("one-direction-only/half_nat.pcap", 2, ("10.244.1.7:9092 answers what 10.0.0.9:9092 is asked",), (NOTHING,)),
    Case("one-direction-only/oneway_requests_only.pcap", 2, ("holds only requests", UNJUDGED), (NOTHING,)),
    Case("one-direction-only/oneway_responses_only.pcap", 2, ("holds only responses", UNJUDGED), ("snap length",)),
    Case("large-metadata-slow/big_metadata.pcap.zst", 0, (NOTHING,)),
    Case("judging-amplified/s5_500_500.pcap", 0, (), ("too much to judge",)),
    Case("mongo-login-told-as-failed/mongo_auth_ok.pcap", 0, (NOTHING,)),
    Case("mongo-login-told-as-failed/mongo_auth_speculative_ok.pcap", 0, (NOTHING,)),
    Case("mongo-login-told-as-failed/mongo_credentials_commands_ok.pcap", 0, (NOTHING,)),
    Case("nat-copies/k8s_snat_twice.pcap", 0, ("3 more connections are copies of others", NOTHING)),
    Case("client-closes-in-the-answer/client_closes.pcap.zst", 0,
         ("no packets missing", "closed 60 connections", "receive.message.max.bytes"), ("cut off",)),
    Case("single-broker-replication-factor/single_broker_rf3.pcap", 1,
         ("offsets.topic.replication.factor=1",), ("replication.factor=3",)),
    Case("not-coordinator-never-asks/librdkafka_2630.pcap", 1,
         ("Restart worker", "no FindCoordinator was seen"), ("Do not restart",)),
    Case("log-got-shorter/unclean_election_truncation.pcap", 1,
         ("CRITICAL 60 acknowledged records of orders-0 are gone: the log end fell from 277 to 217",
          "Group orders-app had read there", "unclean.leader.election.enable=false"),
         ("nothing is lost", "retention.ms")),
    Case("same-group-instance-id/static_same_instance_id.pcap", 1,
         ("10.0.0.5 and 10.0.0.6 both use group.instance.id w-0 in group orders-app and fence each other",
          "give each its own group.instance.id"), (NOTHING,)),
    Case("offset-fetch-refused/redpanda_6423_unstable.pcap", 1,
         ("CRITICAL Group orders-app cannot begin: an open transaction holds its offsets", "find-hanging"), (NOTHING,)),
    Case("cursor-of-another-server/mongo_cursor_other_mongos.pcap", 0,
         ("that 10.0.0.20:27017 opened",), ("take it back",)),
    Case("pktap/pktap.pcap", 0, ("exchanges",), ("link type",)),
    Case("proxy-protocol/proxy_protocol_v1.pcap", 0, ("exchanges", "no packets missing")),
    Case("proxy-protocol/proxy_protocol_v2.pcap", 0, ("exchanges", "no packets missing")),
    Case("proxy-protocol/mongo_proxy_v1.pcap", 0, ("exchanges", "no packets missing")),
    Case("proxy-protocol/mongo_proxy_v2.pcap", 0, ("exchanges", "no packets missing")),
    Case("http-answers/kafka_http_answers.pcap", 1,
         ("10.0.0.9:9092 answers HTTP to the Kafka requests", "TCP mode"), (NOTHING, UNJUDGED)),
    Case("http-answers/mongo_http_answers.pcap", 1,
         ("10.0.0.20:27017 answers HTTP to the MongoDB requests", "TCP mode"), (NOTHING, "health check")),
    *(
        Case(f"loop-at-one-offset/{name}", 1,
             ("CRITICAL Group orders-app (A at 10.0.0.5) commits but does not move on orders-0: it fetches from", came),
             (NOTHING,))
        for name, came in LOOPS.items()
    ),
    Case("never-commits/real_librdkafka.pcap.zst", 0,
         ("Group report-app has never committed nc: each of 6 starts of report read from offset 0 on",)),
    Case("out-of-range-then-silent/one_partition_dropped.pcap.zst", 1,
         ("A at 10.0.0.5 of group orders-app has not fetched orders-2 since it got OFFSET_OUT_OF_RANGE for offset",),
         ("has died or hangs", NOTHING)),
    Case("offset-fetch-refused/librdkafka_5586.pcap", 1,
         ("worker at 10.0.0.5 asked once for the offsets of group orders-app, was refused with NOT_COORDINATOR, and "
          "has read nothing of orders-0 since",), (NOTHING,)),
    Case("connection-refused/refused.pcap", 1,
         ("CRITICAL No process listens at 10.0.0.9:9092: 30 connections of 10.0.0.5 were refused",),
         (NOTHING, UNJUDGED)),
    Case("connection-refused/real_librdkafka.pcap", 1,
         ("CRITICAL No process listens at 127.0.0.1:29199",), (UNJUDGED,)),
    Case("connection-refused/syn_unanswered.pcap", 1,
         ("CRITICAL 10.0.0.9:9092 answers no connection of 10.0.0.5", "firewall"), (NOTHING, UNJUDGED)),
    *(
        Case(f"sasl-needed/{name}.pcap", 1,
             ("at its first request without a SASL handshake", "security.protocol=SASL_"),
             (NOTHING, "health check", "connects again"))
        for name in ("real_kafka_python", "real_librdkafka", "sasl_needed")
    ),
    *(
        Case(f"advertised-listener/{name}.pcap", 1,
             (f"never continues to {named}, which Metadata names", "advertised.listeners"), (NOTHING, "health check"))
        for name, named in (
            ("real_kafka_python", "kafka-internal:29192"), ("real_librdkafka", "kafka-internal:29192"),
            ("advertised_localhost", "localhost:9092"), ("advertised_internal_name", "kafka:29092"),
        )
    ),
    Case("idle-connection-dropped/lb_idle_timeout.pcap", 0,
         ("WARNING producer-x at 10.0.0.5 gets no answer from 10.0.0.9:9092 after each pause of 5 min",
          "connections.max.idle.ms"), (NOTHING,)),
    Case("plaintext-to-tls-listener/plain_to_tls.pcap", 1,
         ("answers TLS to the Kafka requests", "security.protocol"), (NOTHING,)),
]  # fmt: skip


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case.path)
def test_a_case_is_judged_as_its_reporter_expects(case: Case) -> None:
    done = run("diagnose", str(CASES / case.path))
    text = " ".join(done.output.split())
    assert done.exit_code == case.code, text
    assert "internal error" not in text
    for words in case.has:
        assert words in text
    for words in case.lacks:
        assert words not in text


def decoded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("decode", "--json", str(CASES / name)).stdout.splitlines()]


def test_a_client_behind_a_proxy_is_the_one_that_the_header_names() -> None:
    done = run("decode", str(CASES / "proxy-protocol" / "proxy_protocol_v2.pcap"))
    assert "192.0.2.7" in done.stdout


def test_every_login_is_answered_with_ok() -> None:
    for name in ("mongo_auth_ok", "mongo_credentials_commands_ok"):
        replies = [one for one in decoded(f"mongo-login-told-as-failed/{name}.pcap") if one["direction"] == "response"]
        assert replies
        assert not [one for one in replies if (one["body"] or {}).get("ok") == 0]


def test_dumps_of_words_are_put_in_order() -> None:
    done = CliRunner().invoke(
        app, ["explain", "--hex", "-"], input=(CASES / "hexdump-words" / "hexdump.txt").read_text()
    )
    assert "OffsetCommit v7 request" in done.output


def test_a_missing_tag_buffer_is_named() -> None:
    text = (CASES / "missing-tag-buffer" / "alter_configs_v2.hex").read_text()
    done = run("explain", "--hex", text.strip())
    assert "missing after resources[0].configs[0]" in " ".join(done.output.split())


def test_an_http_probe_is_called_http() -> None:
    done = run("diagnose", str(CASES / "http-answers" / "http_probe.pcap"))
    assert "HTTP" in str(done.exception)
