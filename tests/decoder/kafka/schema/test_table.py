from __future__ import annotations

from collections import defaultdict

import pytest

from decoder.kafka.schema import table
from decoder.kafka.schema.table import FieldLayout, StructLayout, api_names, api_versions, layout, messages


def definition(kind: str, api_key: int, version: int) -> dict:
    return next(
        m.definition
        for m in messages()
        if (m.kind, m.api_key) == (kind, api_key) and table.within(version, m.versions)
    )  # fmt: skip


def field(struct: StructLayout, *path: str) -> FieldLayout:
    found = next(item for item in struct.fields if item.name == path[0])
    return found if len(path) == 1 else field(found.struct, *path[1:])


class TestVersions:
    @pytest.mark.parametrize(
        ("api", "key", "versions"),
        [
            ("Produce", 0, (0, 13)),
            ("Fetch", 1, (0, 18)),
            ("ListOffsets", 2, (0, 11)),
            ("Metadata", 3, (0, 13)),
            ("OffsetCommit", 8, (0, 10)),
            ("OffsetFetch", 9, (0, 10)),
            ("LeaderAndIsr", 4, (0, 7)),
            ("StopReplica", 5, (0, 4)),
            ("UpdateMetadata", 6, (0, 8)),
            ("ControlledShutdown", 7, (0, 3)),
            ("ShareFetch", 78, (0, 2)),
        ],
    )
    def test_old_and_new_releases_are_merged(self, api, key, versions):
        assert api_names()[key] == api
        assert api_versions()[key] == versions

    def test_no_version_is_defined_twice(self):
        seen = defaultdict(list)
        for m in messages():
            identity = m.api_key if m.kind in ("request", "response") else m.name
            for version in range(m.versions[0], m.versions[1] + 1):
                seen[m.kind, identity, version].append(m.name)
        assert not {sort: names for sort, names in seen.items() if len(names) > 1}

    def test_no_version_is_missing_between_the_oldest_and_the_newest(self):
        for kind in ("request", "response"):
            for key, (low, high) in api_versions().items():
                for version in range(low, high + 1):
                    assert definition(kind, key, version)

    def test_requests_and_responses_have_the_same_versions_and_flexible_versions(self):
        versions = {"request": {}, "response": {}}
        for m in messages():
            for version in range(m.versions[0], m.versions[1] + 1) if m.kind in versions else ():
                versions[m.kind][m.api_key, version] = table.within(version, m.flexible)
        assert versions["request"] == versions["response"]

    def test_names_are_those_of_the_newest_release(self):
        assert api_names()[74] == "ListConfigResources"  # ListClientMetricsResources until 4.0


class TestHeaderVersions:
    @pytest.mark.parametrize(
        ("api_key", "version", "flexible", "expected"),
        [(0, 8, False, 1), (0, 9, True, 2), (18, 3, True, 2), (7, 0, False, 0), (7, 1, False, 1), (17, 1, False, 1)],
    )
    def test_of_requests(self, api_key, version, flexible, expected):
        assert table.request_header_version(api_key, version, flexible) == expected

    @pytest.mark.parametrize(("api_key", "flexible", "expected"), [(0, False, 0), (0, True, 1), (18, True, 0)])
    def test_of_responses_with_api_versions_always_0(self, api_key, flexible, expected):
        assert table.response_header_version(api_key, flexible) == expected

    @pytest.mark.parametrize(("api_key", "never"), [(17, "SaslHandshake"), (47, "OffsetDelete")])
    def test_some_apis_are_never_flexible(self, api_key, never):
        assert api_names()[api_key] == never
        own = [m for m in messages() if m.api_key == api_key and m.kind in ("request", "response")]
        assert len(own) == 2
        assert not any(m.flexible[0] <= min(m.flexible[1], m.versions[1]) for m in own)


class TestLayouts:
    def test_a_tagged_field_moves_with_the_version(self):
        # KIP-903: the replica id of a Fetch went from its place into a tagged struct in v15.
        assert field(layout(definition("request", 1, 14), 14), "replicaId").tag is None
        assert field(layout(definition("request", 1, 15), 15), "replicaState").tag == 1
        with pytest.raises(StopIteration):
            field(layout(definition("request", 1, 15), 15), "replicaId")

    def test_nullable_in_some_versions_only(self):
        assert not field(layout(definition("request", 3, 0), 0), "topics").nullable
        assert field(layout(definition("request", 3, 1), 1), "topics").nullable

    def test_compact_lengths_come_with_flexible_versions_unless_the_field_states_otherwise(self):
        assert not field(layout(definition("request", 0, 8), 8), "topicData", "name").compact
        assert field(layout(definition("request", 0, 9), 9), "topicData", "name").compact
        headers = next(m for m in messages() if m.name == "RequestHeader" and table.within(2, m.versions))
        client_id = field(layout(headers.definition, 2), "clientId")
        assert client_id.nullable
        assert not client_id.compact  # so that any broker can read it

    @pytest.mark.parametrize(
        ("kind", "key", "version", "path", "default"),
        [
            ("request", 1, 18, ("rackId",), '""'),
            ("request", 1, 12, ("clusterId",), "null"),
            ("request", 1, 15, ("replicaState", "replicaId"), "-1"),
            ("request", 1, 18, ("topics", "partitions", "highWatermark"), "9223372036854775807"),
            ("response", 18, 3, ("finalizedFeaturesEpoch",), "-1"),
            ("response", 18, 3, ("supportedFeatures",), "[]"),
            ("response", 1, 17, ("responses", "partitions", "divergingEpoch"), '{"epoch": -1, "endOffset": -1}'),
        ],
    )
    def test_defaults_are_those_of_the_schema(self, kind, key, version, path, default):
        assert field(layout(definition(kind, key, version), version), *path).default == default
