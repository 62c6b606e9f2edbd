"""The samples are valid and accepted by API servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from examples.memcached.component import memcached
from examples.memcached.defaulting import default
from examples.memcached.model import Memcached
from examples.memcached.validation import validate
from ocf.objects import Manifest, load_document
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from ocf.testing.envtest.fixtures import Envtest

SAMPLES: Final = Path(__file__).parents[3] / "examples" / "memcached" / "deploy" / "samples"
FILES: Final = sorted(path for path in SAMPLES.glob("*.yaml") if path.stem != "kustomization")
EACH: Final = pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)


def sample(file: Path) -> Manifest:
    manifest = load_document(file.read_text(encoding="utf-8"))
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}


@EACH
def test_the_webhooks_accept_it(file: Path) -> None:
    cache = default(Memcached.model_validate(sample(file)))

    assert validate(cache, strict=True) == ()


@EACH
def test_it_has_the_name_of_its_file(file: Path) -> None:
    assert sample(file)["metadata"]["name"] == file.stem


@EACH
def test_what_it_asks_for_can_be_rendered(file: Path) -> None:
    cache = memcached(default(Memcached.model_validate(sample(file))))

    assert {"Deployment", "Service"} <= {manifest["kind"] for manifest in cache.render()}


@EACH
async def test_the_embedded_cluster_accepts_it(file: Path) -> None:
    cluster = EmbeddedCluster()
    await cluster.create(Memcached.definition(), field_manager="author")

    created = await cluster.create(sample(file), field_manager="author")

    assert created["spec"]["image"]


def test_all_are_accepted_by_a_real_api_server(envtest: Envtest) -> None:
    """Strictly, so that no field is misspelt, and together, as `kubectl apply --kustomize` sends them."""
    envtest.plane.install_crds(Memcached.definition())

    said = envtest.kubectl("apply", "--server-side", "--validate=strict", f"--kustomize={SAMPLES}")

    assert sorted(said.splitlines()) == sorted(
        f"memcached.memcached.c5c3.io/{file.stem} serverside-applied" for file in FILES
    )
