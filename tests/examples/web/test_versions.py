"""Golden tests of the shop at every supported version; versions that render alike share a golden file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from examples.web import played
from examples.web.application import application
from examples.web.database import HOST, PASSWORD_SECRET, database
from examples.web.shop import Shop
from ocf.cluster import ListOptions
from ocf.component import Component
from ocf.objects import Manifest, dump_document
from ocf.testing import Firing, Fixture, MatrixCase, VersionMatrix, VirtualClock
from ocf_server import EmbeddedCluster

SAMPLE: Final = Path(__file__).parents[3] / "examples" / "web" / "shop.yaml"
GOLDENS: Final = Path(__file__).parent / "goldens"
VERSIONS: Final = ("2.3.0", "2.0.3", "1.4.2")


def shop(version: str, **changes: object) -> Shop:
    owner = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))
    return Shop.model_validate({**owner, "spec": {**owner["spec"], "version": version, **changes}})


def build_database(version: str, _spec: None) -> Component:
    return database(shop(version))


def build_application(version: str, exporter: bool) -> Component:
    return application(shop(version, exporter=exporter))


DATABASE: Final = VersionMatrix(
    directory=GOLDENS / "database",
    versions=VERSIONS,
    fixtures=[
        Fixture(
            name="plain",
            spec=None,
            requires=["connection", Firing("few-connections", at="1.4.2")],
            forbids=[Firing("few-connections", at="2.0.3")],
        )
    ],
    build=build_database,
)
APPLICATION: Final = VersionMatrix(
    directory=GOLDENS / "application",
    versions=VERSIONS,
    fixtures=[
        Fixture(
            name="plain",
            spec=False,
            requires=[
                *(Firing("database-access", at=version) for version in VERSIONS),
                Firing("database-url", at="1.4.2"),
                *(Firing(name, at=version) for name in ("health-path", "cpu-only") for version in ("1.4.2", "2.0.3")),
            ],
            forbids=[
                Firing("database-url", at="2.0.3"),
                *(Firing(name, at="2.3.0") for name in ("health-path", "cpu-only")),
                "metrics",
            ],
        ),
        Fixture(
            name="exporter",
            spec=True,
            requires=[
                *(Firing("metrics", at=version) for version in VERSIONS),
                Firing("stats-path", at="1.4.2"),
            ],
            forbids=[Firing("stats-path", at="2.0.3")],
        ),
    ],
    build=build_application,
)


@pytest.fixture(autouse=True)
def _data() -> Iterator[None]:
    """Fill the cells that a reconcile would fill."""
    with HOST.seeded("corner-db.shop.svc"), PASSWORD_SECRET.seeded("corner-password"):
        yield


@pytest.mark.parametrize("case", DATABASE.cases(), ids=str)
def test_the_database_at_every_version(case: MatrixCase, update_goldens: bool) -> None:
    case.check(update=update_goldens)


@pytest.mark.parametrize("case", APPLICATION.cases(), ids=str)
def test_the_application_at_every_version(case: MatrixCase, update_goldens: bool) -> None:
    case.check(update=update_goldens)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_suspended_shop(clock: VirtualClock, version: str, update_goldens: bool) -> None:
    """The manifests of a suspended shop are read from the cluster: a component renders only those of a running one."""
    cluster = await played.healthy_cluster(clock, version=version, exporter=True)
    await played.change(cluster, suspended=True)
    await played.reconcile_until_in_sync(cluster, clock)
    text = "---\n".join([dump_document(in_order(declared(each))) for each in await workloads(cluster)])
    path = GOLDENS / "suspended" / f"{version}.yaml"
    if update_goldens:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == text


def in_order(value: Any) -> Any:
    """Put the keys of maps in order: a cluster promises none."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


async def workloads(cluster: EmbeddedCluster) -> list[Manifest]:
    kinds = ("StatefulSet", "apps/v1"), ("Deployment", "apps/v1"), ("HorizontalPodAutoscaler", "autoscaling/v2")
    return [
        item
        for kind, version in kinds
        for item in (await cluster.list(version, kind, ListOptions(namespace="shop"))).items
    ]


def declared(live: Manifest) -> Manifest:
    """Leave out what only the server knows."""
    metadata = {key: value for key, value in live["metadata"].items() if key in {"name", "annotations"}}
    containers = live["spec"]["template"]["spec"]["containers"] if "template" in live["spec"] else []
    images = [each["image"] for each in containers]
    return {"kind": live["kind"], "metadata": metadata, "replicas": live["spec"].get("replicas"), "images": images}
