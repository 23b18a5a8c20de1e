"""docs/adding-a-protocol.md tells of the package as it is; and nobody asks for a protocol by name without a reason."""

from __future__ import annotations

import re

import pytest

from decoder.protocol import WireProtocol
from tests.house import asking, python_files
from tests.paths import ROOT
from tests.protocols.conftest import PACKAGE

_DOCS = (ROOT / "docs" / "adding-a-protocol.md").read_text()
_WAS_THE_ONLY_ONE = "what no protocol is given for is Kafka: from when there was no other"
_OF_KAFKA = "what only Kafka has: groups, partitions, offsets, transactions"
_ALLOWED = {
    "decoder/codec.py": _WAS_THE_ONLY_ONE,
    "decoder/explain/choice.py": _WAS_THE_ONLY_ONE,
    "decoder/explain/frame.py": _WAS_THE_ONLY_ONE,
    "pipeline/analysis/clients.py": "what tells of clients: ids and versions of Kafka, hello of MongoDB",
    "pipeline/analysis/codes/table.py": "the tables of error codes of Kafka and of MongoDB, one a protocol",
    "pipeline/analysis/descriptions.py": "topics and their ids, which a table knows, are Kafka's",
    "pipeline/analysis/rules/bodies_read.py": "which bodies rules of Kafka and of MongoDB read",
    "pipeline/analysis/rules/capture/connections/advertised.py": "clients continue to the servers named: Kafka's",
    "pipeline/analysis/rules/capture/connections/answered.py": "what Kafka's clients ask first is no work yet",
    "pipeline/analysis/rules/capture/connections/limits.py": "that clients begin with ApiVersions is Kafka's",
    "pipeline/analysis/rules/capture/connections/thrown_out.py": "that a server closes before a login is Kafka's",
    "pipeline/analysis/rules/closed_midway.py": "only Fetch of Kafka has a limit of the client that closes connections",
    "pipeline/analysis/rules/churning.py": "what a short connection was for: apis of Kafka say",
    "pipeline/analysis/rules/run.py": "nothing names the clusters of others: their servers have ends of their own",
    "pipeline/analysis/live_metrics/traffic.py": "apis of Kafka, commands of MongoDB, side by side",
    "pipeline/analysis/statements/exchanges.py": "what exchanges say of offsets and groups, and of commands",
    "pipeline/capture/runs/block_agent.py": "the fast path of Kafka",
    "pipeline/capture/runs/large_frames.py": "the fast path of Kafka, for a frame alone",
    "pipeline/capture/sessions/decryption.py": "tshark's own dissector of that name, turned off",
    "pipeline/capture/stats.py": "what the fast path of Kafka counts",
    "pipeline/commands/messages/apis.py": "numbers of Kafka's apis may be given for names",
    "pipeline/dashboard/charts.py": "whose traffic a chart is of unless another protocol is chosen",
    "pipeline/dashboard/queries/clients.py": "clients of Kafka and of MongoDB are counted apart",
    "pipeline/dashboard/queries/overview/names.py": "what has names to look for: Kafka's things, MongoDB's",
    "pipeline/dashboard/queries/overview/proof.py": _OF_KAFKA,
    "pipeline/dashboard/queries/progress/groups.py": _OF_KAFKA,
    "pipeline/dashboard/queries/progress/partitions.py": _OF_KAFKA,
    "pipeline/dashboard/queries/progress/rebalances.py": _OF_KAFKA,
    "pipeline/dashboard/queries/progress/shares.py": _OF_KAFKA,
    "pipeline/dashboard/queries/traffic/exchanges.py": "apis and commands are counted in a table each",
    "pipeline/dashboard/web/page/clients.py": "the page of Kafka's and MongoDB's clients",
    "pipeline/dashboard/web/page/group.py": _OF_KAFKA,
    "pipeline/dashboard/web/page/partitions.py": _OF_KAFKA,
    "pipeline/dashboard/web/page/transactions.py": _OF_KAFKA,
    "pipeline/quality/relations.py": "only its exchanges are commands",
    "pipeline/quality/suites.py": "what the agent stores of OP_COMPRESSED",
    "pipeline/streaming/silver/stated.py": "as analysis/statements",
    "pipeline/dashboard/queries/traffic/conversation.py": "coordinators, which answer for groups, are Kafka's",
    "pipeline/dashboard/web/page/groups.py": _OF_KAFKA,
    "pipeline/quality/conformance.py": "what Kafka's protocol promises",
}
"""Files that ask for a protocol by name, and why."""


def test_the_code_in_the_docs_is_that_of_the_package():
    sources = "\n".join(path.read_text() for path in [*PACKAGE.rglob("*.py"), PACKAGE / "pyproject.toml"])
    quoted = re.findall(r"```\w+\n(.*?)```", _DOCS, re.DOTALL)
    assert len(quoted) == 3
    assert [code for code in quoted if code not in sources] == []


def test_the_docs_name_what_a_protocol_owes():
    table = set(re.findall(r"\| `(\w+)` \|", _DOCS))
    assert table == set(WireProtocol.__abstractmethods__)
    named = set(re.findall(r"`(\w+)`", _DOCS))
    assert {name for name in vars(WireProtocol) if not name.startswith("_")} - named <= {
        "name", "title", "kind_of", "compiled", "records", "keeps_headers", "has_api_latencies",
    }  # fmt: skip


def test_who_asks_for_a_protocol_by_name_has_a_reason():
    assert set(asking(python_files(ROOT))) == set(_ALLOWED)


@pytest.mark.parametrize("text", ['scope.has("kafka")', 'frames["kafka"]', "WHERE protocol = 'mongodb'"])
def test_however_it_asks(text):
    assert asking({"pipeline/analysis/rules/one.py": text}) == ["pipeline/analysis/rules/one.py"]
    assert asking({"pipeline/analysis/rules/kafka/one.py": text, "decoder/mongodb.py": text}) == []
