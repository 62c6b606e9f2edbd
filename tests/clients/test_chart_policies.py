"""helm renders the policies of a chart for the release of the cluster, and with their expressions as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from ocf.manifests import Format, render
from tests.clients.helm import Helm
from tests.manifests.test_policies import MUTATING, VALIDATING, installed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.support import Server


@pytest.mark.parametrize("program", ["helm", "helm3"])
@pytest.mark.parametrize(("release", "version"), [("1.34.2", "v1beta1"), ("1.35.9", "v1beta1"), ("1.36.0", "v1")])
async def test_a_chart_has_the_version_that_the_release_serves(
    embedded: Server, tmp_path: Path, program: str, release: str, version: str
) -> None:
    """As in https://github.com/gardener/gardener-extension-provider-aws/pull/1770."""
    helm = Helm(embedded, tmp_path, program)
    for path, text in render(installed(VALIDATING, MUTATING), Format.HELM).generated.items():
        (tmp_path / "chart" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / path).write_text(text, encoding="utf-8")

    printed = await helm.succeeds("template", "corner", "chart", f"--kube-version={release}")

    found = [one for one in yaml.safe_load_all(printed) if one and "AdmissionPolicy" in one["kind"]]
    wanted = [
        one for each in (VALIDATING, MUTATING) for one in each.manifests(namespace="shop", mutating_version=version)
    ]
    key = lambda one: one["kind"]  # noqa: E731 (helm sorts by kind)
    assert sorted(found, key=key) == sorted(wanted, key=key)
