"""`ocf validate --fix`: HPAs of a beta are written as autoscaling/v2; everything else in the file stays as it is."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from ocf.autoscaling.api.betas import as_v2
from ocf.cli.app import app
from ocf.cli.manifest_files import read_documents
from ocf.objects import Manifest
from ocf.objects.documents import dump_document, load_documents
from tests.autoscaling.api.test_betas import rows

HEAD: Final = """\
# our autoscaler
apiVersion: autoscaling/v2beta1  # old
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  metrics:
"""
FIXED_HEAD: Final = HEAD.replace("v2beta1", "v2")


def fix(file: Path) -> Result:
    return CliRunner().invoke(app, ["validate", "--fix", str(file)], catch_exceptions=False)


def fixed(tmp_path: Path, text: str) -> str:
    file = tmp_path / "web.yaml"
    file.write_bytes(text.encode())
    answer = fix(file)
    assert answer.exit_code == 0, answer.output
    assert f"fix: {file}: " in answer.stderr
    return file.read_bytes().decode()


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        pytest.param(
            "  - type: Resource\n    resource:\n      name: cpu\n      targetAverageUtilization: 70  # much\n",
            "  - type: Resource\n    resource:\n      name: cpu\n      target:\n        type: Utilization\n"
            "        averageUtilization: 70  # much\n",
            id="utilization",
        ),
        pytest.param(
            "  - resource:\n      targetAverageValue: 1Gi\n      name: memory\n    type: Resource\n",
            "  - resource:\n      target:\n        type: AverageValue\n        averageValue: 1Gi\n      name: memory\n"
            "    type: Resource\n",
            id="the first field",
        ),
        pytest.param(
            "  - type: Pods\n    pods:\n      metricName: rps # name\n      # all of them\n      selector:\n"
            "        matchLabels: {a: b}\n      targetAverageValue: 1k   # enough\n",
            "  - type: Pods\n    pods:\n      metric:\n        name: rps # name\n        # all of them\n"
            "        selector:\n          matchLabels: {a: b}\n      target:\n        type: AverageValue\n"
            "        averageValue: 1k   # enough\n",
            id="several fields and their comments",
        ),
        pytest.param(
            "  - type: Object\n    object:\n      target:\n        kind: Ingress\n        name: main\n"
            "        apiVersion: networking.k8s.io/v1\n      metricName: hits\n      targetValue: 10\n",
            "  - type: Object\n    object:\n      metric:\n        name: hits\n      describedObject:\n"
            "        kind: Ingress\n        name: main\n        apiVersion: networking.k8s.io/v1\n"
            "      target:\n        type: Value\n        value: 10\n",
            id="the described object",
        ),
        pytest.param(
            "  - type: Object\n    object: # of all\n      target: # this\n        # one\n        kind: Ingress # k\n"
            "        name: main\n        # below\n      # the name\n      metricName: hits\n      targetValue: 0 # none"
            "\n      averageValue: 3\n      # end\n",
            "  # none\n  - type: Object\n    object: # of all\n      metric:\n        # the name\n        name: hits\n"
            "      describedObject: # this\n        # one\n        kind: Ingress # k\n        name: main\n"
            "        # below\n      target:\n        type: AverageValue\n        averageValue: 3\n      # end\n",
            id="a field that has no place",
        ),
        pytest.param(
            "  # first\n  - type: Resource\n    resource: {name: cpu, # the cpu\n      targetAverageUtilization: 7 # a"
            "\n      } # flow\n",
            "  # first\n  # the cpu\n  # a\n  - type: Resource\n    resource: "
            '{"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 7}} # flow\n',
            id="comments in braces",
        ),
        pytest.param(
            "  - type: External\n    external:\n      metricName: >- # folded\n        a\n\n      metricSelector:\n"
            "        matchExpressions:\n        - key: '#no' # yes\n          operator: Exists\n"
            '# far left\n      targetAverageValue: "7"\n',
            "  - type: External\n    external:\n      metric:\n        name: >- # folded\n          a\n\n"
            "        selector:\n          matchExpressions:\n          - key: '#no' # yes\n            operator: Exists"
            '\n      target:\n        type: AverageValue\n        # far left\n        averageValue: "7"\n',
            id="other places of comments",
        ),
        pytest.param(
            "  - type: Resource\n    resource: &r\n      name: cpu # c\n      targetAverageUtilization: 70 # of\n"
            "  - type: Resource\n    resource: *r\n",
            "  - type: Resource\n    resource: &r\n      name: cpu # c\n      target:\n        type: Utilization\n"
            "        averageUtilization: 70 # of\n  - type: Resource\n    resource: *r\n",
            id="a source of two metrics",
        ),
        pytest.param(
            "  - {type: Resource, resource: {name: cpu, targetAverageUtilization: 70}} # flow\n",
            '  - {type: Resource, resource: {"name": "cpu", "target": {"type": "Utilization", '
            '"averageUtilization": 70}}} # flow\n',
            id="flow",
        ),
        pytest.param(
            "  - type: Pods\n    pods:\n      metricName: a\n      targetAverageValue: 7\n"
            "status:\n  desiredReplicas: 1\n  currentMetrics:\n  - type: Resource\n    resource:\n"
            "      currentAverageUtilization: 5\n      currentAverageValue: 9m\n      name: cpu\n",
            "  - type: Pods\n    pods:\n      metric:\n        name: a\n      target:\n        type: AverageValue\n"
            "        averageValue: 7\nstatus:\n"
            "  desiredReplicas: 1\n  currentMetrics:\n  - type: Resource\n    resource:\n"
            "      current:\n        averageValue: 9m\n        averageUtilization: 5\n      name: cpu\n",
            id="a status",
        ),
        pytest.param(
            "  - type: Pods\n    pods:\n      metric: {name: a}\n      target: {type: AverageValue, averageValue: 7}\n",
            "  - type: Pods\n    pods:\n      metric: {name: a}\n      target: {type: AverageValue, averageValue: 7}\n",
            id="metrics that are of v2 already",
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_metric_is_edited_where_it_is(tmp_path: Path, metric: str, expected: str, newline: str) -> None:
    found = fixed(tmp_path, f"a: 1\n---\n{HEAD}{metric}---\nkind: X  # last\n".replace("\n", newline))

    assert found == f"a: 1\n---\n{FIXED_HEAD}{expected}---\nkind: X  # last\n".replace("\n", newline)


def test_of_v2beta2_only_the_version_changes(tmp_path: Path) -> None:
    text = HEAD.replace("v2beta1", "v2beta2").replace("  metrics:\n", "  behavior: {scaleUp: {selectPolicy: Min}}\n")

    assert fixed(tmp_path, text) == text.replace("v2beta2", "v2")


def test_fields_of_v2beta1_in_v2_are_edited(tmp_path: Path) -> None:
    """As after a change of the version alone: https://github.com/bitnami/charts/issues/33698."""
    text = FIXED_HEAD + "  - {type: Pods, pods: {metricName: rps, targetAverageValue: 5}}\n"

    assert '{"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": 5}}' in fixed(tmp_path, text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_the_encoding_of_a_file_stays(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "web.yaml"
    text = HEAD.replace("# our", "# \u00fcber our").replace("v2beta1", "v2beta2").replace("  metrics:\n", "")
    file.write_bytes(text.encode(encoding))

    assert fix(file).exit_code == 0
    assert file.read_bytes() == text.replace("v2beta2", "v2").encode(encoding)


def test_the_first_line_of_a_file_with_a_mark_is_edited(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    text = V2BETA2.removeprefix("# our autoscaler\n")
    file.write_bytes(text.encode("utf-8-sig"))

    assert fix(file).exit_code == 0
    assert file.read_bytes() == text.replace("v2beta2", "v2").encode("utf-8-sig")


def test_json_and_items_of_lists_are_edited(tmp_path: Path) -> None:
    item = load_documents(HEAD + "  - {type: Pods, pods: {metricName: rps, targetAverageValue: 5}}\n")[0]
    found = fixed(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [item, item]}))
    items = json.loads(found)["items"]

    assert [each["apiVersion"] for each in items] == ["autoscaling/v2"] * 2
    assert items[1]["spec"]["metrics"][0]["pods"]["target"] == {"type": "AverageValue", "averageValue": 5}


METRICS: Final = tuple(
    f"  - type: {kind}\n    {source}:\n{fields}"
    for kind, source, fields in (
        ("Resource", "resource", "      targetAverageUtilization: 70\n      name: cpu\n"),
        (
            "ContainerResource",
            "containerResource",
            "      container: a\n      name: cpu\n      targetAverageValue: 1\n",
        ),
        ("Pods", "pods", "      targetAverageValue: 5\n      metricName: a\n"),
        ("Pods", "pods", "      selector:\n        matchLabels:\n          a: b\n      targetAverageValue: 5\n"),
        ("Pods", "pods", "      selector: {matchLabels: {a: b},\n        }\n      metricName:\n        rps\n"),
        ("Pods", "pods", "      {metricName: rps,\n      targetAverageValue: 5}\n"),
        ("External", "external", "      targetValue: 5\n      metricSelector:\n        matchLabels: {}\n"),
        ("External", "external", "      metricName: |-\n        q\n      targetAverageValue: 5\n"),
        (
            "Object",
            "object",
            "      target:\n        name: x\n        kind: y\n      targetValue: 0\n      averageValue: 1\n",
        ),
        (
            "Object",
            "object",
            "      averageValue: 1\n      metricName: 'm'\n      target: {name: x,\n        kind: y}\n",
        ),
    )
)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("column", [0, 2, 4, 6, 8, 10])
def test_no_comment_is_lost(tmp_path: Path, metric: str, column: int) -> None:
    """One at the end of each line in which YAML allows it, and one in front of each line, at any column."""
    lines = [
        part
        for number, line in enumerate(metric.splitlines())
        for part in (" " * column + f"# before {number}", f"{line} # beside {number}")
    ]
    if "|-" in metric:
        lines = [line.removesuffix(" # beside 3") for line in lines if line.strip() != "# before 3"]
    file = tmp_path / "web.yaml"
    before = HEAD + "\n".join([*lines, " " * column + "# last", ""])
    file.write_text(before)
    answer = fix(file)
    after = file.read_text()

    assert "written as autoscaling/v2" in answer.stderr
    assert sorted(re.findall("# .*", after)) == sorted(re.findall("# .*", before))


V2BETA2: Final = HEAD.replace("v2beta1", "v2beta2").replace("  metrics:\n", "")


def test_a_file_that_cannot_be_written_completely_stays_as_it_was(tmp_path: Path) -> None:
    """The limit on the size of files is that of a process: a disk that is full after 4 KiB."""
    file = tmp_path / "web.yaml"
    text = f"{V2BETA2}# {'x' * 20_000}\n"
    file.write_text(text)
    program = "from ocf.cli.app import app; app()"
    ocf = shlex.join([sys.executable, "-c", program, "validate", "--fix", str(file)])
    done = subprocess.run(["/bin/sh", "-c", f"ulimit -f 8; {ocf}"], capture_output=True, text=True, check=False)  # noqa: S603

    assert done.returncode == 2, done.stderr
    assert f"--fix: {file} cannot be written: File too large" in done.stderr
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_the_mode_and_a_symbolic_link_stay(tmp_path: Path) -> None:
    folder, stored = tmp_path / "files", tmp_path / "stored.yaml"
    folder.mkdir()
    stored.write_text(V2BETA2)
    stored.chmod(0o640)
    link = folder / "web.yaml"
    link.symlink_to(stored)
    assert fix(link).exit_code == 0

    assert link.is_symlink()
    assert stored.read_text() == V2BETA2.replace("v2beta2", "v2")
    assert stored.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_file_with_two_names_is_edited(tmp_path: Path, link: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(V2BETA2)
    getattr(tmp_path / "b.yaml", link)(file)
    answer = fix(tmp_path)

    assert "cannot be edited" not in answer.stderr
    assert answer.exit_code == 0
    assert [each.read_text() for each in sorted(tmp_path.iterdir())] == [V2BETA2.replace("v2beta2", "v2")] * 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD.replace("  metrics:\n", "  metrics: &m []\n  x: *m\n").replace("v2beta1", "v2"), id="v2"),
        pytest.param("kind: HorizontalPodAutoscaler\napiVersion: autoscaling/v1\nspec: {maxReplicas: 3}\n", id="v1"),
        pytest.param("{{ if .x }}\napiVersion: {{ .version }}\nkind: HorizontalPodAutoscaler\n", id="template"),
        pytest.param("apiVersion: autoscaling/v2beta1\nkind: ScalingPolicy\n", id="another kind"),
    ],
)
def test_other_files_are_not_written(tmp_path: Path, text: str) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(text)
    before = file.stat().st_mtime_ns
    answer = fix(file)

    assert "fix:" not in answer.stderr
    assert (file.read_text(), file.stat().st_mtime_ns) == (text, before)


ANNOTATED: Final = "{name: web, annotations: {autoscaling.alpha.kubernetes.io/behavior: '%s'}}\n"
SLOW: Final = ANNOTATED % '{"ScaleUp": {"SelectPolicy": "Min"}}'
OF_SLOW: Final = HEAD.replace("{name: web}\n", SLOW)
MIN: Final = "  behavior:\n    scaleUp:\n      selectPolicy: Min\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"{HEAD}  - {{type: Pods, pods: &p {{metricName: rps, targetAverageValue: 5}}}}\n"
            "  - {type: Pods, pods: *p} # again\n",
            f"{FIXED_HEAD}  - {{type: Pods, pods: &p "
            '{"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": 5}}}\n'
            "  - {type: Pods, pods: *p} # again\n",
            id="an alias in braces",
        ),
        pytest.param(
            f"{OF_SLOW}   []\n# end",
            f"{OF_SLOW.replace('v2beta1', 'v2')}   []\n{MIN}# end",
            id="a behavior in the annotation",
        ),
        pytest.param(
            f"{OF_SLOW}   []",
            f"{OF_SLOW.replace('v2beta1', 'v2')}   []\n{MIN}",
            id="at the end without a line end",
        ),
        pytest.param(
            f"apiVersion: autoscaling/v2beta1\nkind: HorizontalPodAutoscaler\nmetadata: {SLOW}"
            "spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1} # c\n  }\n",
            f"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {SLOW}"
            "spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1} # c\n  "
            ', "behavior": {"scaleUp": {"selectPolicy": "Min"}}}\n',
            id="a behavior in braces",
        ),
    ],
)
def test_aliases_and_the_annotation_of_the_behavior_are_written(tmp_path: Path, text: str, expected: str) -> None:
    assert fixed(tmp_path, text) == expected


SHARED: Final = """\
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v1
  kind: Policy
  metrics: &m
  - {type: Pods, pods: {metricName: rps, targetAverageValue: 5}}
- apiVersion: autoscaling/v2beta1
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web}, metrics: *m}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(SHARED, "items[1]: cannot be edited in place because of aliases: *m on line 11", id="an alias"),
        pytest.param(
            f"kind: ConfigMap\n---\n{SHARED}",
            "items[1]: cannot be edited in place because of aliases: *m on line 13",
            id="an alias in another document",
        ),
        pytest.param(
            "kind: ConfigMap\n---\n{{ if .x }}\napiVersion: autoscaling/v2beta1\nkind: HorizontalPodAutoscaler\n",
            "document 2: line 4: autoscaling/v2beta1 in what is not YAML, such as a template, is not edited",
            id="a template",
        ),
        pytest.param(
            "kind: HorizontalPodAutoscaler\napiVersion: 'autoscaling/v2beta2'\nspec:\n{{ toYaml . | nindent 2 }}\n",
            "document 1: line 2: autoscaling/v2beta2 in what is not YAML, such as a template, is not edited",
            id="a template of v2beta2",
        ),
    ],
)
def test_what_cannot_be_edited_stays_and_is_named(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(text)
    answer = fix(file)

    assert answer.exit_code == 1
    assert f"fix: {file}: {reason}; write autoscaling/v2 by hand\n" in answer.stderr
    assert file.read_text() == text


def test_the_standard_input_cannot_be_edited() -> None:
    answer = CliRunner().invoke(app, ["validate", "--fix", "-"], input=HEAD)

    assert answer.exit_code == 2
    assert "--fix edits files" in answer.stderr


@pytest.mark.parametrize("output", ["YAML", "JSON"])
def test_each_valid_object_is_written_as_what_it_means(tmp_path: Path, output: str) -> None:
    """All at once in one file, each in a document of its own; the table has what Kubernetes converts them to."""
    valid = [row.hpa for row in rows() if row.spec is not None and not row.problems and not annotated(row.hpa)]
    write = dump_document if output == "YAML" else json.dumps
    file = tmp_path / "all.yaml"
    file.write_text("\n---\n".join(write(each) for each in valid))
    fix(file)

    assert len(valid) > 300
    assert [each.manifest for each in read_documents([str(file)])] == [as_v2(each) for each in valid]


def annotated(hpa: Manifest) -> bool:
    """Return whether the behavior is in an annotation, which is not edited in place."""
    return bool(as_v2({**hpa, "spec": {}})["spec"])
