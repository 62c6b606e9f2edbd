"""A version matrix from a file equals one from code, and every invalid value is reported with its place."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from ocf.errors import BuildError
from ocf.feature import VersionGate
from ocf.primitives import hpa
from ocf.testing import Firing, load_matrix


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")
    maximum: int = 10


BASE = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10},
}
FILE = """
directory: goldens
versions: [1.0.0, 2.0.0]
fixtures:
- name: default
  spec: {}
  requires: [more]
- name: large
  specFile: large.yaml
  requires: [{mutation: more, at: 2.0.0}]
  forbids: [{mutation: more, at: 1.0.0}]
"""


def build(version: str, spec: Spec) -> hpa.Resource:
    def mutate(m: hpa.Mutator) -> None:
        m.edit_hpa_spec(lambda edited: edited.set_max_replicas(spec.maximum))

    return hpa.Builder(BASE).with_mutation(hpa.Mutation("more", mutate, feature=VersionGate(version, ">= 2"))).build()


def load(folder: Path, text: str = FILE, large: str = "maximum: 50") -> Any:
    (folder / "matrix.yaml").write_text(text)
    (folder / "large.yaml").write_text(large)
    return load_matrix(folder / "matrix.yaml", spec=Spec.model_validate, build=build)


def test_a_matrix_file_equals_the_matrix_in_code(tmp_path: Path) -> None:
    matrix = load(tmp_path)
    assert (matrix.directory, tuple(matrix.versions)) == (tmp_path / "goldens", ("1.0.0", "2.0.0"))
    assert [fixture.spec for fixture in matrix.fixtures] == [Spec(), Spec(maximum=50)]
    assert [fixture.required for fixture in matrix.fixtures] == [(Firing("more"),), (Firing("more", "2.0.0"),)]
    for case in matrix.cases():
        case.check(update=True)
    for case in matrix.cases():
        case.check()
    assert "maxReplicas: 50" in (tmp_path / "goldens" / "large" / "2.0.0.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            FILE.replace("specFile: large.yaml", "spec: {}\n  specFile: large.yaml"), "exactly one of", id="two specs"
        ),
        pytest.param(FILE.replace("  specFile: large.yaml\n", ""), "fixtures.1: .*exactly one of", id="no spec"),
        pytest.param(FILE.replace("versions: [1.0.0, 2.0.0]\n", ""), "versions: Field required", id="no versions"),
        pytest.param(FILE.replace("directory", "dir"), "dir: Extra inputs", id="unknown key"),
        pytest.param(FILE.replace("goldens", "''"), "directory cannot be empty", id="no directory"),
        pytest.param(FILE.replace("at: 2.0.0", "at: 3.0.0"), "one of 1.0.0, 2.0.0", id="version that is not listed"),
        pytest.param(FILE.replace("large.yaml", "gone.yaml"), "gone.yaml cannot be read", id="missing file"),
        pytest.param("fixtures: [", "matrix.yaml", id="no YAML"),
        pytest.param("[]", "a map with keys is expected", id="no mapping"),
    ],
)
def test_an_invalid_file_is_rejected_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        load(tmp_path, text)


def test_a_spec_that_does_not_fit_names_its_fixture(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="fixture large: 1 validation error for Spec"):
        load(tmp_path, large="minimum: 1")
