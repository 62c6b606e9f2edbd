"""helm renders a generated chart to exactly the texts of its author, whatever they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ocf.manifests import Installation, InstallOptions, render
from ocf.manifests.formats import Format
from ocf.manifests.helm_templates import kept
from ocf.manifests.install_options import Project
from ocf.runtime.operator import Operator, OwnerType
from tests.clients.helm import Helm
from tests.manifests.test_hostile_texts import GROUP, PIECES, definition_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.support import Server


@pytest.mark.parametrize("program", ["helm", "helm3"])
async def test_a_chart_renders_to_the_texts_as_they_are(embedded: Server, tmp_path: Path, program: str) -> None:
    """Each piece by itself, all of them together, and in reverse; in values, keys and the description of the chart."""
    helm = Helm(embedded, tmp_path, program)
    texts = [*PIECES, "".join(PIECES), "".join(reversed(PIECES))]
    definition = definition_of("\n".join(texts), labels={text: text for text in texts}, column="".join(PIECES))
    operator: Operator[Any] = Operator(
        name="shops", owner=OwnerType(f"{GROUP}/v1", "Shop", definition=definition), components=lambda _: ()
    )
    project = Project(description="".join(PIECES), keywords=texts)
    for path, text in render(
        Installation(operator, [], InstallOptions(project=project)), Format.HELM
    ).generated.items():
        (tmp_path / "chart" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / path).write_text(text, encoding="utf-8")

    printed = await helm.succeeds("template", "corner", "chart", "--kube-version=1.36.0")
    made = [one for one in yaml.safe_load_all(printed) if one]

    assert [one for one in made if one["kind"] == "CustomResourceDefinition"] == [kept(definition)]
    assert {one["kind"] for one in made} == {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Deployment",
        "NetworkPolicy",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    }
