"""`ocf validate` and `ocf default`: the errors of the API server per file and document, without a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.manifest_files import read_documents
from ocf.objects.documents import load_documents

if TYPE_CHECKING:
    from click.testing import Result

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
PLACE: Final = (11, 79)  # of averageValue in BAD
BOTH: Final = (
    "shop/web: spec.metrics[0].resource.target.averageValue: "
    "Forbidden: may not set both a target raw value and a target utilization"
)
JSON: Final = json.dumps(load_documents(BAD)[0])
VALIDATED: Final = "validated 2 HorizontalPodAutoscalers: 1 valid, 1 invalid\n"
DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template: {spec: {containers: [{name: web, image: web}]}}
"""


def at(file: str, problem: str, line: int = PLACE[0], column: int = PLACE[1]) -> str:
    return f"{file}:{line}:{column}: {problem}"


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
        assert validate(write("web.yaml", BAD)) == (1, [at("web.yaml", BOTH)])

    def test_the_standard_input_is_a_dash(self) -> None:
        assert validate("-", stdin=BAD) == (1, [at("-", BOTH)])

    def test_json_is_read_too(self) -> None:
        column = JSON.index('"averageValue"') + 1
        assert validate(write("web.json", JSON)) == (1, [at("web.json", BOTH, 1, column)])

    def test_json_lines_are_read(self) -> None:
        good = json.dumps(load_documents(GOOD)[0])
        lines = f"\n{good}\n{JSON}\n{{not json, kind: HorizontalPodAutoscaler\n  {JSON}\n"
        code, found = validate("-", stdin=lines)
        column = JSON.index('"averageValue"') + 1
        assert code == 1
        assert [found[0], found[2]] == [at("-", BOTH, 3, column), at("-", BOTH, 5, column + 2)]
        assert found[1].startswith("-:5:1: document 1: line 5: ")
        assert len(found) == 3

    def test_json_lines_that_are_longer_than_a_document_are_read(self) -> None:
        padding = json.dumps({"kind": "ConfigMap", "data": {"a": "x" * 2_000_000}})
        assert validate("-", stdin=f"{padding}\n{padding}\n{JSON}")[0] == 1

    def test_utf16_with_a_byte_order_mark_is_read(self) -> None:
        Path("web.yaml").write_bytes(BAD.encode("utf-16"))
        assert validate("web.yaml") == (1, [at("web.yaml", BOTH)])

    def test_a_folder_stands_for_its_files(self) -> None:
        write("deploy/b/web.yml", BAD)
        write("deploy/a.json", JSON)
        write("deploy/notes.txt", BAD)
        write("deploy/.hidden/web.yaml", BAD)
        code, lines = validate("deploy")
        assert (code, [line.partition(":")[0] for line in lines]) == (1, ["deploy/a.json", "deploy/b/web.yml"])

    def test_a_hidden_folder_that_is_named_is_read(self) -> None:
        write(".deploy/web.yaml", BAD)
        assert validate(".deploy") == (1, [at(".deploy/web.yaml", BOTH)])

    def test_a_pipe_in_a_folder_is_left_out_and_a_broken_link_is_named(self) -> None:
        write("deploy/web.yaml", GOOD)
        os.mkfifo("deploy/pipe.yaml")
        assert validate("deploy") == (0, [])
        Path("deploy/gone.yaml").symlink_to("nowhere.yaml")
        problem = "deploy/gone.yaml: cannot be read: it is a link to nowhere.yaml, which does not exist"
        assert validate("deploy") == (2, [problem])

    def test_the_items_of_a_list_are_validated(self) -> None:
        whole = {"apiVersion": "v1", "kind": "List", "items": [*load_documents(GOOD + "---" + BAD), 7]}
        text = json.dumps(whole)
        code, lines = validate(write("list.json", text))
        assert (code, lines) == (
            1,
            [
                at("list.json", BOTH, 1, text.index('"averageValue"') + 1),
                "list.json:1:1: document 1: items[2]: items of a List must be objects, got int",
            ],
        )

    @pytest.mark.parametrize("typed", [True, False], ids=["with kinds", "as the API server sends them"])
    def test_the_items_of_an_hpa_list_are_validated(self, typed: bool) -> None:
        (bad,) = load_documents(BAD)
        item = bad if typed else {key: bad[key] for key in ("metadata", "spec")}
        whole = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscalerList", "items": [item]}
        code, lines = validate(write("list.json", json.dumps(whole)))
        assert (code, len(lines)) == (1, 1)
        assert lines[0].endswith(BOTH)

    def test_a_list_in_a_list_is_an_error(self) -> None:
        inner = {"apiVersion": "v1", "kind": "List", "items": load_documents(GOOD)}
        code, lines = validate("-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [inner]}))
        assert (code, len(lines)) == (1, 1)
        assert "items[0]: kubectl does not read a List in a List" in lines[0]

    def test_the_defaulted_object_is_validated(self) -> None:
        """Without `minReplicas` it is 1, and `maxReplicas: 0` violates two rules."""
        text = GOOD.replace("  minReplicas: 2\n", "").replace("maxReplicas: 10", "maxReplicas: 0")
        assert validate(write("web.yaml", text))[1] == [
            f"web.yaml:7:3: shop/web: spec.maxReplicas: {problem}"
            for problem in (
                "Required value: must be set and greater than 0",
                "Invalid value: 0: must be greater than or equal to `minReplicas`",
            )
        ]

    def test_autoscaling_v1_is_validated_after_conversion(self) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        old = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
        write("good.json", json.dumps({**old, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}))
        write("bad.json", json.dumps({**old, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": []}}))
        write("low.json", json.dumps({**old, "spec": {"scaleTargetRef": target, "maxReplicas": -3}}))
        assert validate("good.json") == (0, [])
        assert validate("bad.json")[1][0].startswith("bad.json:1:207: web: spec.metrics: unknown field")
        assert validate("low.json")[1][0].startswith("low.json:1:189: web: spec.maxReplicas: Invalid value: -3")

    def test_an_update_is_validated_as_one(self) -> None:
        write("old.yaml", GOOD.replace("namespace: shop", "namespace: shop, resourceVersion: '1', uid: a"))
        new = GOOD.replace("namespace: shop", "namespace: shop, resourceVersion: '1', uid: b")
        code, lines = validate(write("new.yaml", new), "--update-from", "old.yaml")
        assert code == 1
        assert lines[0].startswith('new.yaml:4:62: shop/web: metadata.uid: Invalid value: "b": field is immutable')
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
            (["--update-from", "gone.yaml"], "gone.yaml: cannot be read"),
        ],
    )
    def test_an_invalid_option_is_a_one_line_error(self, options: list[str], problem: str) -> None:
        answer = run("validate", write("web.yaml", GOOD), *options)
        assert (answer.exit_code, answer.stdout) == (2, "")
        assert answer.stderr.startswith("error: ")
        assert problem in answer.stderr
        assert answer.stderr.count("\n") == 1


class TestBadInput:
    """A document that cannot be read is an error if it is meant to be an autoscaler; the others are validated."""

    @pytest.mark.parametrize(
        ("text", "location", "problem"),
        [
            pytest.param("a: [1\nkind: HorizontalPodAutoscaler", "4:1: document 1", "line 4", id="no YAML"),
            pytest.param(
                "- kind: HorizontalPodAutoscaler",
                "2:1: document 1",
                "a map with keys is expected, not a list",
                id="a list of autoscalers",
            ),
            pytest.param(
                "kind: HorizontalPodAutoscaler\nc: " + "[" * 200 + "]" * 200, "4:1: document 1", "levels", id="deep"
            ),
            pytest.param(
                "kind: HorizontalPodAutoscaler\nx: " + "y" * 4_000_000,
                "2:1: document 1",
                "longer than 3145728 bytes",
                id="long",
            ),
            pytest.param("kind: HorizontalPodAutoscaler\nspec: !!int x", "4:1: document 1", "the tag", id="a bad tag"),
            pytest.param("kind: HorizontalPodAutoscaler", "3:1: ?", "apiVersion", id="no version"),
            pytest.param(
                "kind: List\nitems:\n- kind: HorizontalPodAutoscaler\n- ~: 6", "6:1: document 1", "key ~", id="item"
            ),
        ],
    )
    def test_a_bad_document_does_not_hide_others(self, text: str, location: str, problem: str) -> None:
        code, lines = validate(write("all.yaml", f"# first\n---\n{text}\n---{BAD}"))
        assert code == 1
        assert lines[-1].endswith(f": {BOTH}")
        assert lines[0].startswith(f"all.yaml:{location}: ")
        assert problem in lines[0]
        assert len(lines) == 2

    def test_an_alias_bomb_is_rejected(self) -> None:
        bomb = 'a: &a ["x","x","x","x","x","x","x","x","x"]\n' + "".join(
            f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        code, lines = validate("-", stdin=f"{bomb}kind: HorizontalPodAutoscaler\n")
        assert code == 1
        assert "more than" in lines[0]

    @pytest.mark.parametrize(
        ("before", "after", "line"),
        [
            ("maxReplicas: 10", "maxReplicas: '10'", "spec.maxReplicas: must be"),
            ("name: cpu", "name: 7", "spec.metrics[0].resource.name: must be"),
            ("maxReplicas: 10", "maxReplica: 10", 'spec.maxReplica: unknown field, did you mean "maxReplicas"?'),
            ("autoscaling/v2", "autoscaling/v3", '"autoscaling/v3" is not a version of HorizontalPodAutoscaler'),
        ],
    )
    def test_a_decoding_error_has_the_field(self, before: str, after: str, line: str) -> None:
        code, lines = validate(write("web.yaml", GOOD.replace(before, after)))
        assert code == 1
        assert line in lines[0]

    @pytest.mark.parametrize("version", ["v2beta1", "v2beta2"])
    def test_an_old_object_has_the_errors_and_findings_after_the_conversion(self, version: str) -> None:
        """As the HPAs of https://github.com/chatwoot/charts/issues/104 and https://github.com/coredns/helm/pull/101."""
        text = GOOD.replace("autoscaling/v2", f"autoscaling/{version}")
        if version == "v2beta1":
            text = text.replace("target: {type: Utilization, averageUtilization: 70}", "targetAverageUtilization: 70")
        served = (
            f'web.yaml:2:1: shop/web: apiVersion: Invalid value: "autoscaling/{version}": not served by Kubernetes 1.2'
        )
        code, lines = validate("--lint", write("web.yaml", text + "---" + DEPLOYMENT))
        assert code == 1
        assert lines[0].startswith(served)
        assert [line.split(" (")[-1].split(":")[0] for line in lines[1:]] != []
        code, lines = validate("--lint", write("web.yaml", text.replace("maxReplicas: 10", "maxReplicas: 1")))
        assert (code, len(lines)) == (1, 2)
        assert lines[0].startswith(served)
        assert "spec.maxReplicas: Invalid value: 1" in lines[1]

    def test_a_missing_file_does_not_hide_others(self) -> None:
        Path("latin.yaml").write_bytes(b"kind: HorizontalPodAutoscaler\nname: \xe9")
        code, lines = validate("gone.yaml", "latin.yaml", write("web.yaml", BAD))
        assert (code, lines) == (
            2,
            [
                "gone.yaml: cannot be read: No such file or directory",
                lines[1],
                at("web.yaml", BOTH),
            ],
        )
        assert lines[1].startswith("latin.yaml:1:1: ?: apiVersion: ")

    def test_the_summary_counts_as_autoscalers_only_what_was_read(self) -> None:
        Path("deploy").mkdir()
        answer = run("validate", "deploy", "gone.yaml", write("web.yaml", GOOD))
        assert answer.stderr.splitlines() == [
            "validated 1 HorizontalPodAutoscaler: 1 valid, 0 invalid",
            "nothing could be validated in 2 files or folders",
        ]

    def test_a_folder_without_files_is_an_error(self) -> None:
        Path("deploy").mkdir()
        assert validate("deploy") == (2, ["deploy: the folder contains no YAML or JSON files"])

    def test_a_folder_that_cannot_be_read_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As for a user without the permission; the tests may run as one who has all of them."""
        write("deploy/secret/web.yaml", BAD)
        write("deploy/web.yaml", GOOD)
        scan = os.scandir

        def refuse(path: str) -> Any:
            if str(path).endswith("secret"):
                raise PermissionError(13, "Permission denied", path)
            return scan(path)

        monkeypatch.setattr(os, "scandir", refuse)
        assert validate("deploy") == (2, ["deploy/secret: cannot be read: Permission denied"])


class TestOutput:
    def test_json_is_a_list_of_reports(self) -> None:
        answer = run(
            "validate",
            "--output",
            "json",
            "--lint",
            "--severity",
            "info",
            write("all.yaml", f"{GOOD}---{BAD}---\nkind: HorizontalPodAutoscaler\nspec: !x 1"),
        )
        good, bad, broken = json.loads(answer.stdout)
        assert answer.exit_code == 1
        assert (good["valid"], good["errors"]) == (True, [])
        assert {finding["code"] for finding in good["findings"]} >= {"unknown-requests"}
        assert set(good["findings"][0]) == {"code", "severity", "path", "explanation", "fix", "line", "column"}
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
                    "line": 22,
                    "column": 79,
                }
            ],
            "findings": [],
        }
        assert (broken["document"], broken["errors"][0]["type"]) == (3, "BadRequest")

    def test_github_gets_annotations_with_lines(self) -> None:
        text = GOOD.replace("averageUtilization: 70", "averageUtilization: 70, averageValue: 1")
        code, lines = validate("--output", "github", write("a,b.yaml", f"{GOOD}---\n{text}"))
        message = BOTH.partition(": ")[2]
        assert code == 1
        assert lines == [f"::error file=a%2Cb.yaml,line=23,col=79,title=HorizontalPodAutoscaler shop/web::{message}"]

    def test_sarif_has_rules_levels_and_regions(self) -> None:
        answer = run("validate", "--output", "sarif", "--lint", write("a b.yaml", f"{CONSTANT}---{BAD}"), "gone.yaml")
        (log,) = json.loads(answer.stdout)["runs"]
        results = [
            (each["ruleId"], each["level"], log["tool"]["driver"]["rules"][each["ruleIndex"]]["id"])
            for each in log["results"]
        ]
        assert results == [
            (code, level, code)
            for code, level in (("constant-size", "warning"), ("FieldValueForbidden", "error"), ("BadRequest", "error"))
        ]
        (location,) = log["results"][1]["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "a%20b.yaml"},
            "region": {"startLine": 22, "startColumn": 79},
        }
        assert location["logicalLocations"] == [{"name": "shop/web", "kind": "object"}]
        assert "region" not in log["results"][2]["locations"][0]["physicalLocation"]

    def test_lint_uses_the_other_objects(self) -> None:
        code, lines = validate("--lint", write("all.yaml", f"{GOOD}---{DEPLOYMENT}"))
        codes = {line.rpartition("[")[2] for line in lines}
        assert code == 1
        assert {"fixed-replicas]", "missing-request]"} <= codes


CONSTANT: Final = GOOD.replace("minReplicas: 2", "minReplicas: 10")
FIXED: Final = f"{GOOD}---{DEPLOYMENT}".replace("image: web", "image: web, resources: {requests: {cpu: 1}}")


class TestLint:
    @pytest.mark.parametrize(
        ("text", "options", "code", "found"),
        [
            pytest.param(CONSTANT, [], 0, ["constant-size"], id="hints are not reported"),
            pytest.param(CONSTANT, ["--severity", "info"], 0, ["unknown-requests", "constant-size"], id="but can be"),
            pytest.param(CONSTANT, ["--severity", "error"], 0, [], id="only errors"),
            pytest.param(CONSTANT, ["--fail-on", "warning"], 1, ["constant-size"], id="warnings fail on demand"),
            pytest.param(
                CONSTANT,
                ["--severity", "error", "--fail-on", "warning"],
                1,
                ["constant-size"],
                id="what fails is reported",
            ),
            pytest.param(CONSTANT, ["--disable", "constant-size", "--fail-on", "warning"], 0, [], id="disabled"),
            pytest.param(f"{GOOD}---{DEPLOYMENT}", [], 1, ["fixed-replicas", "missing-request"], id="errors fail"),
            pytest.param(FIXED, [], 0, ["fixed-replicas"], id="warnings do not"),
        ],
    )
    def test_severities_and_codes_are_selected(
        self, text: str, options: list[str], code: int, found: list[str]
    ) -> None:
        status, lines = validate("--lint", *options, write("web.yaml", text))
        assert (status, [line.rpartition("[")[2].rstrip("]") for line in lines]) == (code, found)

    @pytest.mark.parametrize(
        ("comment", "found"),
        [
            pytest.param("# ocf: ignore constant-size", 0, id="one code"),
            pytest.param("# ocf: ignore slow-drain, constant-size: a reason", 0, id="several, with a reason"),
            pytest.param("# licence  # ocf: ignore constant-size", 0, id="after another comment"),
            pytest.param("# ocf:ignore constant-size", 0, id="without a blank"),
            pytest.param("# ocf: ignore slow-drain", 1, id="another code"),
            pytest.param("# see ocf#ocf: ignore constant-size", 1, id="no comment of its own"),
        ],
    )
    def test_a_comment_ignores_codes_in_its_document(self, comment: str, found: int) -> None:
        ignoring = CONSTANT.replace("minReplicas: 10", f"minReplicas: 10 {comment}")
        _, lines = validate(
            "--lint", write("web.yaml", f"{ignoring}---{CONSTANT.replace('namespace: shop', 'namespace: b')}")
        )
        assert len([line for line in lines if "shop/web: " in line]) == found
        assert len([line for line in lines if "b/web: " in line]) == 1

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--lint", "--disable", "slow-drian"], 'invalid code "slow-drian": did you mean "slow-drain"?'),
            (["--disable", "slow-drain"], "add --lint"),
            (["--fail-on", "warning"], "add --lint"),
            (["--severity", "info"], "add --lint"),
        ],
    )
    def test_an_option_without_effect_is_an_error(self, options: list[str], problem: str) -> None:
        answer = run("validate", *options, write("web.yaml", GOOD))
        assert (answer.exit_code, answer.stdout) == (2, "")
        assert problem in answer.stderr


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
        assert (answer.exit_code, answer.stderr) == (1, f"{at('all.yaml', BOTH)}\n{VALIDATED}")
        assert len(load_documents(answer.stdout)) == 1


def test_documents_have_their_line() -> None:
    write("all.yaml", "# licence\n---\na: 1\n--- # more\nb: |\n  x\n---\n\n---   \nc: 3\n")
    found = [(one.number, one.line, one.manifest) for one in read_documents(["all.yaml"])]
    assert found == [(1, 2, {"a": 1}), (2, 4, {"b": "x\n"}), (3, 9, {"c": 3})]
