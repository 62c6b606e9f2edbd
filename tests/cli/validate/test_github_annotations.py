"""`ocf validate --output github`: each annotation marks the file, the line and the column of the field."""

import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

TARGET: Final = "{apiVersion: apps/v1, kind: Deployment, name: web}"
HEAD: Final = f"""apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web, namespace: shop}}
spec:
  scaleTargetRef: {TARGET}
"""
WRONG: Final = "  §minReplicas: -1\n  maxReplicas: 3\n"
FLOW: Final = (
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, "
    f"spec: {{maxReplicas: 3, §minReplicas: -1, scaleTargetRef: {TARGET}}}}}\n"
)
LINE: Final = (
    '{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"}, "spec": '
    '{"maxReplicas": 3, §"minReplicas": -1, '
    '"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}\n'
)
LIST: Final = f"""apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: web}}}}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    §minReplicas: -1
    maxReplicas: 3
    scaleTargetRef: {TARGET}
"""
ANCHOR: Final = f"""apiVersion: autoscaling/v2
kind: HorizontalPodAutoscalerList
items:
- metadata: {{name: first}}
  spec: &shared
    maxReplicas: 3
    scaleTargetRef: {TARGET}
- metadata: {{name: second}}
  spec:
    <<: *shared
    §minReplicas: -1
"""
ALIAS: Final = f"""x-shared: &shared
  §minReplicas: -1
  maxReplicas: 3
  scaleTargetRef: {TARGET}
apiVersion: v1
kind: List
items:
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec: *shared
"""
METRIC: Final = """  maxReplicas: 3
  metrics:
  - type: Resource
    resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, §averageUtilization: 0}
"""


def annotated(*files: str, **environment: str) -> list[tuple[str, int, int]]:
    """Return the file, the line and the column of each annotation."""
    answer = CliRunner().invoke(app, ["validate", "--output", "github", *files], env=environment)
    found = re.findall(r"^::error file=(.*?),line=(\d+),col=(\d+),title=", answer.stdout, re.MULTILINE)
    assert len(found) == len(answer.stdout.splitlines())
    return [(file, int(line), int(column)) for file, line, column in found]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of a repository, without the variables of a runner."""
    (tmp_path / "deploy").mkdir()
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        pytest.param(HEAD + WRONG, "yaml", id="block"),
        pytest.param(HEAD + METRIC, "yaml", id="item of a list"),
        pytest.param(FLOW, "yaml", id="flow"),
        pytest.param(f"# first\n---\na: 1\n---\n{HEAD}{WRONG}", "yaml", id="second document"),
        pytest.param(f"---\n# note\n{HEAD}{WRONG}", "yaml", id="separator first"),
        pytest.param(f"a: 1\n...\n---\n{HEAD}{WRONG}...\n# end\n", "yaml", id="end of a document"),
        pytest.param(f"--- # note\n{HEAD}{WRONG}", "yaml", id="separator with a comment"),
        pytest.param(LIST, "yaml", id="list"),
        pytest.param(ANCHOR, "yaml", id="merged anchor"),
        pytest.param(HEAD.replace("{name: web,", "{name: web, annotations: {a: 😀},") + WRONG, "yaml", id="emoji"),
        pytest.param(HEAD + "  maxReplicas: 3\n  ? §minReplicas\n  : -1\n", "yaml", id="complex key"),
        pytest.param(HEAD + '  maxReplicas: 3\n  §"minReplicas": -1\n', "yaml", id="quoted key"),
        pytest.param("# a\u2028# b\n" + HEAD + WRONG, "yaml", id="a line end of YAML alone"),
        pytest.param(LINE, "json", id="json"),
        pytest.param(LINE.replace("§", "").replace("-1", "2") + LINE, "json", id="second line of JSON Lines"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_an_annotation_marks_the_field(text: str, suffix: str, encoding: str, end: str) -> None:
    before, mark, after = text.partition("§")
    file = Path(f"deploy/web.{suffix}")
    file.write_bytes((before + after).replace("\n", end).encode(encoding))
    assert mark
    assert annotated(str(file)) == [(str(file), before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)]


def test_an_annotation_of_an_alias_marks_where_the_value_is_written() -> None:
    before, _, after = ALIAS.partition("§")
    Path("web.yaml").write_text(before + after)
    assert annotated("web.yaml") == [("web.yaml", before.count("\n") + 1, 3)]


@pytest.mark.parametrize(
    ("workspace", "given", "shown"),
    [
        pytest.param("..", "web.yaml", "deploy/web.yaml", id="another working directory"),
        pytest.param("..", "../deploy/./web.yaml", "deploy/web.yaml", id="detour"),
        pytest.param("", "./web.yaml", "web.yaml", id="no runner"),
        pytest.param("../elsewhere", "web.yaml", "web.yaml", id="outside of the workspace"),
    ],
)
def test_a_path_is_that_of_the_repository(
    folder: Path, monkeypatch: pytest.MonkeyPatch, workspace: str, given: str, shown: str
) -> None:
    monkeypatch.chdir(folder / "deploy")
    Path("web.yaml").write_text((HEAD + WRONG).replace("§", ""))
    root = str((folder / "deploy" / workspace).resolve()) if workspace else ""
    assert annotated(given, GITHUB_WORKSPACE=root) == [(shown, 6, 3)]


def test_an_absolute_path_is_that_of_the_repository(folder: Path) -> None:
    Path("deploy/web.yaml").write_text((HEAD + WRONG).replace("§", ""))
    shown = annotated(str(folder / "deploy" / "web.yaml"), GITHUB_WORKSPACE=str(folder))
    assert shown == [("deploy/web.yaml", 6, 3)]


def test_the_standard_input_has_no_file() -> None:
    text = (HEAD + WRONG).replace("§", "")
    answer = CliRunner().invoke(app, ["validate", "--output", "github", "-"], input=text)
    assert answer.stdout.startswith("::error title=HorizontalPodAutoscaler shop/web::spec.minReplicas: ")
