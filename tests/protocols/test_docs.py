"""docs/adding-a-protocol.md tells of the package as it is; and nobody asks for a protocol by name without a reason."""

from __future__ import annotations

import re

from decoder.protocol import WireProtocol
from tests.paths import ROOT
from tests.protocols.conftest import PACKAGE

_DOCS = (ROOT / "docs" / "adding-a-protocol.md").read_text()
_ASKS = re.compile(r"""protocol\w*["']?\]?\)? *(?:==|!=|=|in|not in) *\(?["'](?:kafka|mongodb)["']""", re.IGNORECASE)
_OWN = re.compile(r"/(?:kafka|mongodb)/|/(?:rules)/")
_ALLOWED = {
    "pipeline/analysis/clients.py": "what tells of clients: ids and versions of Kafka, hello of MongoDB",
    "pipeline/analysis/statements/exchanges.py": "what exchanges say of offsets and groups, and of commands",
    "pipeline/streaming/silver/stated.py": "as analysis/statements",
    "pipeline/analysis/standing/traffic.py": "apis of Kafka, commands of MongoDB, side by side",
    "pipeline/capture/runs/block_agent.py": "the fast path of Kafka",
    "pipeline/commands/messages/apis.py": "numbers of Kafka's apis may be given for names",
    "pipeline/dashboard/web/page/clients.py": "the page of Kafka's and MongoDB's clients",
    "pipeline/dashboard/queries/clients.py": "the same",
    "pipeline/dashboard/queries/progress/shares.py": "share groups are Kafka's",
    "pipeline/dashboard/queries/progress/rebalances.py": "so are rebalances",
    "pipeline/quality/suites.py": "what the agent stores of OP_COMPRESSED",
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
    found = {
        str(path.relative_to(ROOT))
        for room in ("decoder", "pipeline")
        for path in (ROOT / room).rglob("*.py")
        if not _OWN.search(str(path.relative_to(ROOT))) and _ASKS.search(path.read_text())
    }
    assert found == set(_ALLOWED)
