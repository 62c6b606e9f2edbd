"""Selectors and labels of Jobs, as a real API server generates them."""

from typing import Any

import pytest

from ocf_server import EmbeddedCluster

SENT = {"x": "y"}


def job(labels: dict[str, str] | None, pod_labels: dict[str, str] | None, **spec: Any) -> dict[str, Any]:
    container = {"name": "work", "image": "busybox"}
    template = {"metadata": {"labels": pod_labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": "work", "namespace": "default", "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


@pytest.mark.parametrize(
    ("labels", "pod_labels", "inherited"),
    [
        pytest.param(None, None, True, id="no labels"),
        pytest.param(None, SENT, True, id="labels of pods"),
        pytest.param(SENT, SENT, False, id="the same labels"),
        pytest.param(SENT, None, False, id="labels of the Job"),
    ],
)
async def test_a_job_selects_its_pods_by_its_uid(
    labels: dict[str, str] | None, pod_labels: dict[str, str] | None, inherited: bool
) -> None:
    created = await EmbeddedCluster().create(job(labels, pod_labels), field_manager="test")
    uid = created["metadata"]["uid"]
    generated = {"controller-uid": uid, "job-name": "work"}
    generated |= {f"batch.kubernetes.io/{name}": value for name, value in generated.items()}

    assert created["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert created["spec"]["template"]["metadata"]["labels"] == {**(pod_labels or {}), **generated}
    assert created["metadata"]["labels"] == (created["spec"]["template"]["metadata"]["labels"] if inherited else labels)


async def test_a_manual_selector_is_kept() -> None:
    manual = job(None, SENT, manualSelector=True, selector={"matchLabels": SENT})
    created = await EmbeddedCluster().create(manual, field_manager="test")

    assert created["spec"]["selector"] == {"matchLabels": SENT}
    assert created["spec"]["template"]["metadata"]["labels"] == created["metadata"]["labels"] == SENT


async def test_an_update_without_labels_takes_those_of_the_pods() -> None:
    cluster = EmbeddedCluster()
    created = await cluster.create(job(SENT, None), field_manager="test")
    metadata = {name: value for name, value in created["metadata"].items() if name != "labels"}
    updated = await cluster.update({**created, "metadata": metadata}, field_manager="test")

    assert updated["metadata"]["labels"] == created["spec"]["template"]["metadata"]["labels"]
