"""`ocf validate` and `ocf default`: the errors of the API server per file and document, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.manifest_files import read_documents
from ocf.objects import load_documents

if TYPE_CHECKING:
    from typer.testing import Result

GOOD: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
"""
BAD: Final = GOOD.replace("averageUtilization: 70", "averageUtilization: 70, averageValue: 1")
BOTH: Final = (
    "shop/web: spec.metrics[0].resource.target.averageValue: "
    "Forbidden: may not set both a target raw value and a target utilization"
)
DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template: {spec: {containers: [{name: web, image: web}]}}
"""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin, catch_exceptions=False)


def validate(*arguments: str, stdin: str = "") -> tuple[int, list[str]]:
    answer = run("validate", *arguments, stdin=stdin)
    return answer.exit_code, answer.stdout.splitlines()


class TestReport:
    def test_a_valid_object_has_no_output(self) -> None:
        assert validate(write("web.yaml", GOOD)) == (0, [])

    def test_an_error_is_one_line_with_the_message_of_the_server(self) -> None:
        assert validate(write("web.yaml", BAD)) == (1, [f"web.yaml: {BOTH}"])

    def test_the_standard_input_is_a_dash(self) -> None:
        assert validate("-", stdin=BAD) == (1, [f"-: {BOTH}"])

    def test_json_is_read_too(self) -> None:
        assert validate(write("web.json", json.dumps(load_documents(BAD)[0]))) == (1, [f"web.json: {BOTH}"])

    def test_a_folder_stands_for_its_files(self) -> None:
        write("deploy/b/web.yml", BAD)
        write("deploy/a.json", json.dumps(load_documents(BAD)[0]))
        write("deploy/notes.txt", BAD)
        assert validate("deploy") == (1, [f"deploy/a.json: {BOTH}", f"deploy/b/web.yml: {BOTH}"])

    def test_the_items_of_a_list_are_validated(self) -> None:
        whole = {"apiVersion": "v1", "kind": "List", "items": [*load_documents(GOOD + "---" + BAD), 7]}
        code, lines = validate(write("list.json", json.dumps(whole)))
        assert (code, lines) == (
            1,
            [f"list.json: {BOTH}", "list.json: document 1: items of a List must be objects, got int"],
        )

    def test_other_kinds_are_ignored_with_a_note(self) -> None:
        answer = run("validate", write("all.yaml", DEPLOYMENT + "---" + GOOD + "---\nkind: Service\n"))
        assert (answer.exit_code, answer.stdout) == (0, "")
        assert answer.stderr == "note: all.yaml: ignored 2 objects of other kinds (Deployment, Service)\n"

    def test_the_defaulted_object_is_validated(self) -> None:
        """Without `minReplicas` it is 1, and `maxReplicas: 0` violates two rules."""
        text = GOOD.replace("  minReplicas: 2\n", "").replace("maxReplicas: 10", "maxReplicas: 0")
        assert validate(write("web.yaml", text))[1] == [
            "web.yaml: shop/web: spec.maxReplicas: Required value: must be set and greater than 0",
            "web.yaml: shop/web: spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ]

    def test_autoscaling_v1_is_validated_after_conversion(self) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        old = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
        write("good.json", json.dumps({**old, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}))
        write("bad.json", json.dumps({**old, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": []}}))
        write("low.json", json.dumps({**old, "spec": {"scaleTargetRef": target, "maxReplicas": -3}}))
        assert validate("good.json") == (0, [])
        assert validate("bad.json")[1][0].startswith("bad.json: web: spec.metrics: unknown field")
        assert validate("low.json")[1][0].startswith("low.json: web: spec.maxReplicas: Invalid value: -3")

    def test_an_update_is_validated_as_one(self) -> None:
        write("old.yaml", GOOD.replace("namespace: shop", "namespace: shop, resourceVersion: '1', uid: a"))
        new = GOOD.replace("namespace: shop", "namespace: shop, resourceVersion: '1', uid: b")
        code, lines = validate(write("new.yaml", new), "--update-from", "old.yaml")
        assert code == 1
        assert lines[0].startswith('new.yaml: shop/web: metadata.uid: Invalid value: "b": field is immutable')
        assert validate("new.yaml") == (0, [])

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ([], 1),
            (["--feature-gate", "HPAScaleToZero=true"], 0),
            (["--kubernetes-version", "1.37"], 0),
            (["--kubernetes-version", "1.37", "--feature-gate", "HPAScaleToZero=false"], 1),
        ],
    )
    def test_feature_gates_are_applied(self, options: list[str], code: int) -> None:
        external = "{type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}}"
        text = GOOD.replace("minReplicas: 2", "minReplicas: 0").partition("  - type: Resource")[0] + f"  - {external}\n"
        assert validate(write("web.yaml", text), *options)[0] == code

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--feature-gate", "Nope=true"], 'invalid feature gate "Nope=true": write NAME=true'),
            (["--feature-gate", "HPAScaleToZero=maybe"], "invalid feature gate"),
            (["--kubernetes-version", "2.0"], "2.0"),
            (["--update-from", "gone.yaml"], "gone.yaml: document 0: cannot be read"),
        ],
    )
    def test_an_invalid_option_is_a_one_line_error(self, options: list[str], problem: str) -> None:
        answer = run("validate", write("web.yaml", GOOD), *options)
        assert (answer.exit_code, answer.stdout) == (2, "")
        assert answer.stderr.startswith("error: ")
        assert problem in answer.stderr
        assert answer.stderr.count("\n") == 1


class TestBadInput:
    """Every document that cannot be read is reported with file and document, and the others are validated."""

    @pytest.mark.parametrize(
        ("text", "location", "problem"),
        [
            pytest.param("a: [1", "document 1", "line 4", id="no YAML"),
            pytest.param("- 1", "document 1", "a map with keys is expected, not a list", id="a list"),
            pytest.param("c: " + "[" * 1000 + "]" * 1000, "document 1", "levels", id="deep"),
            pytest.param("x: " + "y" * 4_000_000, "document 1", "longer than 3145728 bytes", id="long"),
            pytest.param("kind: HorizontalPodAutoscaler", "?", "apiVersion", id="no version"),
        ],
    )
    def test_a_bad_document_does_not_hide_others(self, text: str, location: str, problem: str) -> None:
        code, lines = validate(write("all.yaml", f"# first\n---\n{text}\n---{BAD}"))
        assert code == 1
        assert lines[-1] == f"all.yaml: {BOTH}"
        assert lines[0].startswith(f"all.yaml: {location}: ")
        assert problem in lines[0]

    def test_an_alias_bomb_is_rejected(self) -> None:
        bomb = 'a: &a ["x","x","x","x","x","x","x","x","x"]\n' + "".join(
            f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        code, lines = validate("-", stdin=bomb)
        assert code == 1
        assert "more than" in lines[0]

    @pytest.mark.parametrize(
        ("before", "after", "line"),
        [
            ("maxReplicas: 10", "maxReplicas: '10'", "spec.maxReplicas: must be"),
            ("name: cpu", "name: 7", "spec.metrics[0].resource.name: must be"),
            ("maxReplicas: 10", "maxReplica: 10", 'spec.maxReplica: unknown field, did you mean "maxReplicas"?'),
            ("autoscaling/v2", "autoscaling/v2beta2", '"autoscaling/v2beta2" is not served by a supported release'),
        ],
    )
    def test_a_decoding_error_has_the_field(self, before: str, after: str, line: str) -> None:
        code, lines = validate(write("web.yaml", GOOD.replace(before, after)))
        assert code == 1
        assert line in lines[0]

    def test_a_missing_file_does_not_hide_others(self) -> None:
        write("latin.yaml", "")
        Path("latin.yaml").write_bytes(b"name: \xe9")
        code, lines = validate("gone.yaml", "latin.yaml", write("web.yaml", BAD))
        assert (code, lines) == (
            1,
            [
                "gone.yaml: cannot be read: No such file or directory",
                "latin.yaml: invalid text: byte 7 is not UTF-8",
                f"web.yaml: {BOTH}",
            ],
        )


class TestOutput:
    def test_json_is_a_list_of_reports(self) -> None:
        answer = run("validate", "--output", "json", "--lint", write("all.yaml", f"{GOOD}---{BAD}---\n- 1"))
        good, bad, broken = json.loads(answer.stdout)
        assert answer.exit_code == 1
        assert (good["valid"], good["errors"]) == (True, [])
        assert {finding["code"] for finding in good["findings"]} >= {"unknown-requests"}
        assert set(good["findings"][0]) == {"code", "severity", "path", "explanation", "fix"}
        detail = "may not set both a target raw value and a target utilization"
        assert bad == {
            "file": "all.yaml",
            "document": 2,
            "name": "shop/web",
            "valid": False,
            "errors": [
                {
                    "path": "spec.metrics[0].resource.target.averageValue",
                    "type": "FieldValueForbidden",
                    "detail": detail,
                    "message": f"Forbidden: {detail}",
                }
            ],
            "findings": [],
        }
        assert (broken["document"], broken["errors"][0]["type"]) == (3, "BadRequest")

    def test_github_gets_annotations_with_lines(self) -> None:
        text = GOOD.replace("averageUtilization: 70", "averageUtilization: 70, averageValue: 1")
        code, lines = validate("--output", "github", write("a,b.yaml", f"{GOOD}---\n{text}"))
        line = GOOD.count("\n") + 1
        message = BOTH.partition(": ")[2]
        assert code == 1
        assert lines == [f"::error file=a%2Cb.yaml,line={line},title=HorizontalPodAutoscaler shop/web::{message}"]

    def test_lint_uses_the_other_objects(self) -> None:
        code, lines = validate("--lint", write("all.yaml", f"{GOOD}---{DEPLOYMENT}"))
        codes = {line.rpartition("[")[2] for line in lines}
        assert code == 0
        assert {"fixed-replicas]", "missing-request]"} <= codes


class TestDefault:
    def test_it_prints_what_the_server_would_store(self) -> None:
        spare = GOOD.replace("  minReplicas: 2\n", "").partition("  metrics:")[0]
        answer = run("default", write("web.yaml", spare))
        (stored,) = load_documents(answer.stdout)
        assert answer.exit_code == 0
        assert stored["spec"]["minReplicas"] == 1
        assert stored["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}

    def test_several_are_several_documents(self) -> None:
        answer = run("default", write("web.yaml", f"{GOOD}---{GOOD.replace('name: web,', 'name: other,')}"))
        assert [one["metadata"]["name"] for one in load_documents(answer.stdout)] == ["web", "other"]

    def test_json_is_a_list(self) -> None:
        answer = run("default", "--output", "json", write("web.yaml", GOOD))
        found: dict[str, Any] = json.loads(answer.stdout)
        assert (found["kind"], len(found["items"])) == ("List", 1)

    def test_autoscaling_v1_is_printed_as_v1(self) -> None:
        old = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n"
        target = "{apiVersion: apps/v1, kind: Deployment, name: web}"
        answer = run("default", "-", stdin=f"{old}spec: {{scaleTargetRef: {target}, maxReplicas: 3}}")
        (stored,) = load_documents(answer.stdout)
        assert (stored["apiVersion"], stored["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 80)

    def test_an_invalid_object_is_reported_instead(self) -> None:
        answer = run("default", write("all.yaml", f"{BAD}---{GOOD}"))
        assert (answer.exit_code, answer.stderr) == (1, f"all.yaml: {BOTH}\n")
        assert len(load_documents(answer.stdout)) == 1


def test_documents_have_their_line() -> None:
    write("all.yaml", "# licence\n---\na: 1\n--- # more\nb: |\n  x\n---\n\n---   \nc: 3\n")
    found = [(one.number, one.line, one.manifest) for one in read_documents(["all.yaml"])]
    assert found == [(1, 2, {"a": 1}), (2, 4, {"b": "x\n"}), (3, 9, {"c": 3})]
