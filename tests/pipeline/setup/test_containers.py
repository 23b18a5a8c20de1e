"""The images and manifests: commands and options that exist, no more rights than needed, and nothing a linter finds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT

CONTAINERS = ROOT / "conf" / "containers"
KUBERNETES = ROOT / "conf" / "kubernetes"
_CLI = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
_VERSION = "1.34.0"
_OWN_KINDS = ("Kustomization", "PodMonitor")
"""Kinds of which Kubernetes itself has no schema."""


def documents() -> list[dict[str, Any]]:
    return [one for path in sorted(KUBERNETES.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The specification of each pod, by the name of what starts it."""
    for one in documents():
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield one["metadata"]["name"], spec["template"]["spec"]


def commands() -> Iterator[list[str]]:
    """The arguments of the program in each image, service and pod."""
    for line in re.findall(r"^CMD (\[.*\])$", (CONTAINERS / "Containerfile").read_text(), re.MULTILINE):
        yield yaml.safe_load(line)
    for service in yaml.safe_load((CONTAINERS / "compose.yaml").read_text())["services"].values():
        if "command" in service:
            yield service["command"]
    for _, pod in pods():
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield container["args"]


def test_commands_and_options_exist() -> None:
    found = list(commands())
    assert len(found) == 9
    for words in found:
        name = " ".join(words[:2]) if words[0] == "capture" else words[0]
        section = _CLI.split(f"## wirelake {name}\n")[1].split("\n## ")[0]
        for option in (word.partition("=")[0] for word in words if word.startswith("--")):
            assert f"`{option}" in section, f"wirelake {name} has no {option}"


def test_no_pod_has_more_rights_than_it_needs() -> None:
    found = dict(pods())
    assert set(found) == {"wirelake-agent", "wirelake-job", "wirelake-daily", "wirelake-page"}
    for name, pod in found.items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        assert pod.get("hostNetwork", False) is (name == "wirelake-agent"), name
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] is True, name
            added = ["NET_RAW"] if name == "wirelake-agent" else None
            assert (rights["capabilities"]["drop"], rights["capabilities"].get("add")) == (["ALL"], added), name
            assert "privileged" not in rights, name


def test_each_volume_that_is_mounted_exists() -> None:
    claims = {one["metadata"]["name"] for one in documents() if one["kind"] == "PersistentVolumeClaim"}
    for name, pod in pods():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert mounted == set(volumes), name
        asked = {volume["persistentVolumeClaim"]["claimName"] for volume in volumes.values() if len(volume) > 1
                 and "persistentVolumeClaim" in volume}  # fmt: skip
        assert asked <= claims, name


def test_the_kustomization_names_each_manifest() -> None:
    named = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert set(named) == {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, CONTAINERS / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("one", documents(), ids=lambda one: f"{one['kind']}-{one.get('metadata', {}).get('name')}")
def test_manifests_are_valid(one: dict[str, Any]) -> None:
    import kubernetes_validate  # noqa: PLC0415 - loads all schemas

    if one["kind"] in _OWN_KINDS:
        with pytest.raises(kubernetes_validate.SchemaNotFoundError):
            kubernetes_validate.validate(one, _VERSION, strict=True)
        return
    kubernetes_validate.validate(one, _VERSION, strict=True)
