"""Comparison with recorded responses of a real API server (1.36.3).

Each scenario in `recorded/` was run against a real API server; each step contains the request and the response. Values
that differ between servers (uids, versions, times) are masked. `$uid` and `$rv` in a request are replaced by those of
the live object.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.protocol import Preconditions
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.api.write_options import FieldValidation

RECORDED = Path(__file__).parent / "recorded"
MASKED = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

PATCH_TYPES = {"json": PatchType.JSON, "merge": PatchType.MERGE, "strategic": PatchType.STRATEGIC_MERGE}

# Only code and reason agree here, because a real API server prints the whole object, or a value in Go syntax.
DIFFERENT_TEXT = {
    "several problems at once",
    "an item that is no map",
    "a pattern that is none",
    "metadata",
    "merge patch, strict",
    "JSON patch, strict",
}


def scenarios() -> list[Any]:
    found: list[Any] = []
    for path in sorted(RECORDED.glob("*.json")):
        rows = json.loads(path.read_text())
        definition = None
        if isinstance(rows, dict):
            # Scenarios about one custom kind share its definition.
            definition, rows = rows["definition"], rows["scenarios"]
        found.extend(pytest.param({**row, "definition": definition}, id=f"{path.stem}: {row['title']}") for row in rows)
    return found


def masked(manifest: Manifest) -> Manifest:
    metadata = manifest["metadata"]
    for name in MASKED:
        if name in metadata:
            metadata[name] = "*"
    for entry in metadata.get("managedFields", []):
        if "time" in entry:
            entry["time"] = "*"
        # As text, because the order of the fields counts.
        entry["fieldsV1"] = json.dumps(entry["fieldsV1"])
    if "managedFields" in metadata:
        # Entries are ordered by time, which is masked; `managedfields/test_field_manager.py` tests the order.
        metadata["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    return manifest


def error_summary(error: ApiError) -> dict[str, Any]:
    message = re.sub(r"in record \(\d+\)", "in record (*)", UID.sub("*", error.message))
    response: dict[str, Any] = {"code": error.code, "reason": error.reason, "message": message}
    if error.causes:
        response["causes"] = sorted([cause.reason, cause.field, cause.message] for cause in error.causes)
    return response


class ScenarioRunner:
    """Runs the steps of one scenario."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._plain = cluster
        self._cluster = cluster
        self._last: ObjectKey | None = None

    async def run_step(self, step: dict[str, Any]) -> dict[str, Any]:
        step = await self._filled(step)
        manifest = step.get("manifest")
        if manifest is None:
            self._last = ObjectKey(*step["key"])
        elif manifest["metadata"].get("name"):
            self._last = ObjectKey.of(manifest)
        warnings: list[str] = []
        level = FieldValidation(step.get("validation", "Warn"))
        self._cluster = self._plain.checking(level, warn=warnings.append)
        try:
            response = await self._execute(step)
        except ApiError as error:
            return {"error": error_summary(error), "warnings": warnings}
        return {"object": masked(response) if response is not None else None, "warnings": warnings}

    async def _filled(self, step: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(step)
        if '"$' not in text or self._last is None:
            return step
        metadata = (await self._cluster.get(self._last))["metadata"]
        filled = text.replace('"$uid"', json.dumps(metadata["uid"])).replace(
            '"$rv"', f'"{metadata["resourceVersion"]}"'
        )
        loaded: dict[str, Any] = json.loads(filled)
        return loaded

    async def _execute(self, step: dict[str, Any]) -> Manifest | None:
        part = Subresource(step["part"]) if "part" in step else None
        by, dry_run = step.get("by", ""), step.get("dry_run", False)
        match step["do"]:
            case "create":
                return await self._cluster.create(step["manifest"], field_manager=by, dry_run=dry_run)
            case "update":
                return await self._cluster.update(step["manifest"], field_manager=by, subresource=part, dry_run=dry_run)
            case "apply":
                return await self._cluster.apply(
                    step["manifest"],
                    field_manager=by,
                    force=step.get("force", False),
                    subresource=part,
                    dry_run=dry_run,
                )
            case "get":
                return await self._cluster.get(ObjectKey(*step["key"]), subresource=part)
            case "patch":
                kind = PATCH_TYPES[step["type"]]
                key = ObjectKey(*step["key"])
                return await self._cluster.patch(
                    key,
                    step["patch"],
                    PatchOptions(patch_type=kind, field_manager=by, subresource=part, dry_run=dry_run),
                )
            case _:
                wanted = step.get("preconditions") or {}
                preconditions = Preconditions(wanted.get("uid"), wanted.get("resourceVersion"))
                await self._cluster.delete(
                    ObjectKey(*step["key"]), DeleteOptions(preconditions=preconditions, dry_run=dry_run)
                )
                return None


def comparable(step: dict[str, Any], response: dict[str, Any], title: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the expected and the actual response without values that differ between servers."""
    expected = {name: value for name, value in step["answer"].items() if name != "accepted"}
    if expected.get("object") is not None:
        expected["object"] = masked(expected["object"])
    if "warnings" not in expected:
        response.pop("warnings")
    if step["answer"].get("accepted"):
        # The response repeats the whole schema; other scenarios test its effect on objects.
        response = {"object": {"metadata": {"name": response["object"]["metadata"]["name"]}}}
    if "error" in expected:
        expected["error"].get("causes", []).sort()
        several = len(expected["error"].get("causes", ())) > 1
        for side in (expected.get("error", {}), response.get("error", {})):
            if several or title in DIFFERENT_TEXT:
                # A real API server reports several problems of a custom resource in random order.
                side.pop("message", None)
            if title in DIFFERENT_TEXT:
                side.pop("causes", None)
    return expected, response


@pytest.mark.parametrize("scenario", scenarios())
@pytest.mark.promise("recorded")
async def test_responses_equal_those_of_a_real_api_server(cluster: EmbeddedCluster, scenario: dict[str, Any]) -> None:
    """Every response, an object or an error, equals the recorded one."""
    runner = ScenarioRunner(cluster)
    if scenario["definition"]:
        await cluster.create(scenario["definition"], field_manager="author")
    for number, step in enumerate(scenario["steps"]):
        expected, response = comparable(step, await runner.run_step(step), scenario["title"])
        assert response == expected, f"step {number}: {step['do']}"
