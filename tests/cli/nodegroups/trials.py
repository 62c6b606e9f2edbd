"""Objects and helpers of the tests of `ocf nodegroups try`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner, Result

from ocf.cli.app import app

API: Final = "autoscaling.ocf.dev/v1alpha1"
TYPES: Final = [
    {"name": "small", "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": "fra", "price": 0.02}]},
    {"name": "free", "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": "fra"}]},
    {"name": "other", "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": "ams", "price": 1}]},
    {"name": "large", "allocatable": {"cpu": "8", "memory": "32Gi"}, "offerings": [{"zone": "fra", "price": 0.09}]},
]


def group(**spec: Any) -> dict[str, Any]:
    settings = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small", "large"], **spec}
    return {"apiVersion": API, "kind": "NodeGroup", "metadata": {"name": "workers"}, "spec": settings}


def template(cpu: str, **annotations: str) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"labels": {"app": "web"}, "annotations": {f"ocf.dev/{k}": v for k, v in annotations.items()}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def workload(kind: str, cpu: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": selector, "template": template(cpu), **spec},
    }


def job(cpu: str, after: str) -> dict[str, Any]:
    found = template(cpu, **{"finish-after": after})
    found["spec"]["restartPolicy"] = "Never"
    metadata = {"name": "report", "namespace": "shop"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": found}}


def annotated_job(annotations: dict[str, str]) -> dict[str, Any]:
    found = job("1", "5m")
    found["spec"]["template"]["metadata"]["annotations"] = annotations
    return found


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template(cpu)["spec"], **spec}}


def ask(objects: Sequence[dict[str, Any]], *options: str) -> Result:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1)
    Path("objects.json").write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["nodegroups", "try", "objects.json", "--types=types.json", *options])


def found(objects: Sequence[dict[str, Any]], *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the answer in JSON."""
    done = ask(objects, "--output=json", *options)
    assert not isinstance(done.exception, Exception), done.exception
    return done.exit_code, json.loads(done.stdout)


def texts(answer: dict[str, Any], kind: str) -> list[str]:
    return [step["text"] for step in answer["steps"] if step["kind"] == kind]
