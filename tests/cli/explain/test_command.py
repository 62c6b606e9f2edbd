"""`ocf explain` with files: text, JSON, options, errors and pictures."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app
from ocf.objects.yaml_reader import read_yaml
from tests.cli.page_commands import run_commands

OWN: Final = "HorizontalAutoscaler"
FOLDER: Final = Path(__file__).parent / "data"
SNAPSHOTS: Final = sorted(each.stem for each in FOLDER.glob("*.yaml"))
DOCS: Final = FOLDER.parents[3] / "docs"
PAGE: Final = (DOCS / "autoscaling" / "explain-hpa.md").read_text(encoding="utf-8")
KEYS: Final = (DOCS / "autoscaling" / "explain-hpa-api.md").read_text(encoding="utf-8")
AS_JSON: Final = ("every-kind-of-metric", "limited", "one-metric-failed", "unknown-history")


def explain(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["explain", *words], input=stdin)


def shown(answer: Result) -> str:
    assert (answer.exit_code, answer.exception) == (0, None), answer.output
    return answer.stdout


def compare(golden: Path, text: str, *, update: bool) -> None:
    if update:
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--ocf-update-goldens"))


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_text_is_the_golden_text(name: str, *, update: bool) -> None:
    compare(FOLDER / f"{name}.txt", shown(explain("-f", str(FOLDER / f"{name}.yaml"))), update=update)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_lines_fit_into_80_columns_except_for_single_words(name: str) -> None:
    for line in shown(explain("-f", str(FOLDER / f"{name}.yaml"))).splitlines():
        assert len(line) <= 80 or len(line.split()) == 1


@pytest.mark.parametrize("name", AS_JSON)
def test_the_json_is_the_golden_json(name: str, *, update: bool) -> None:
    text = shown(explain("-f", str(FOLDER / f"{name}.yaml"), "--output", "json"))
    compare(FOLDER / f"{name}.json", text, update=update)


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys, except those inside Kubernetes' own objects."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}{key}"
            if key not in {"conditions", "observed"}:
                yield from keys(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{path[:-1]}[].")


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_json_key_is_documented(name: str) -> None:
    """The keys are a public interface, so each of them must be on the page."""
    documented = set(re.findall(r"`([A-Za-z.[\]]+)`", "".join(re.findall(r"^\| (`.*?) \|", KEYS, re.MULTILINE))))
    found = json.loads(shown(explain("-f", str(FOLDER / f"{name}.yaml"), "--output", "json")))
    assert {documented_form(key) for key in keys(found)} <= documented | {"least"}


def documented_form(key: str) -> str:
    """Return the documented key that stands for several keys of the same form."""
    key = re.sub(r"^most\b", "least", key)
    key = key.replace("policies.down[]", "policies.up[]").replace("cannotShrink.", "cannotGrow.")
    key = key.replace("shrinksLater", "growsLater")
    return key.replace("scaleDowns[]", "scaleUps[]")


def test_every_command_of_the_page_prints_the_output_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_commands(PAGE) == 3


def test_every_option_is_documented() -> None:
    usage = CliRunner().invoke(app, ["explain", "--help"], env={"COLUMNS": "200"}).stdout
    offered = set(re.findall(r"--[a-z-]+", usage)) - {"--help", "--traceback", "--kubeconfig", "--context", "--file"}
    of_owners = (DOCS / "operators/explain.md").read_text(encoding="utf-8")
    assert offered <= set(re.findall(r"--[a-z-]+", PAGE + of_owners))


def write_files(tmp_path: Path, *parts: str) -> str:
    path = tmp_path / "web.yaml"
    path.write_text("\n---\n".join(parts))
    return str(path)


HPA: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
"""
BUSY: Final = """
apiVersion: ocf.dev/v1
kind: Snapshot
now: 2026-01-31T12:00:00Z
pods: [{count: 2, requests: {cpu: 500m}}]
metrics: [{name: cpu, perPod: 270m}]
history: {recommendations: []}
"""


def desired(*words: str) -> int:
    found = json.loads(shown(explain(*words, "--output", "json")))
    return int(found["replicas"]["desired"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param((), 2, id="defaults"),
        pytest.param(("--tolerance", "0.01"), 3, id="tolerance"),
        pytest.param(
            ("--tolerance", "0.01", "--scale-up-limit-factor", "1", "--scale-up-limit-minimum", "2"), 2, id="growth"
        ),
        pytest.param(("--cpu-initialization-period", "2h"), 2, id="initialization"),
    ],
)
def test_the_controller_settings_are_applied(tmp_path: Path, options: tuple[str, ...], expected: int) -> None:
    assert desired("-f", write_files(tmp_path, HPA, BUSY), *options) == expected


def test_the_scale_down_window_is_applied(tmp_path: Path) -> None:
    idle = BUSY.replace("270m", "90m").replace("[]", "[{replicas: 2, ago: 4m}]")
    path = write_files(tmp_path, HPA, idle)
    assert (desired("-f", path), desired("-f", path, "--downscale-stabilization", "3m")) == (2, 1)


def test_the_kubernetes_version_is_applied(tmp_path: Path) -> None:
    """The tolerance of an HPA is enabled from 1.35."""
    strict = HPA + "  behavior: {scaleUp: {tolerance: '0'}}\n"
    path = write_files(tmp_path, strict, BUSY)
    assert (desired("-f", path), desired("-f", path, "--kubernetes-version", "1.34")) == (3, 2)
    assert desired("-f", path, "--kubernetes-version", "1.34", "--feature-gate", "HPAConfigurableTolerance=true") == 3


def test_the_standard_input_can_be_read() -> None:
    assert "2 replicas next" in shown(explain("-f", "-", stdin=f"{HPA}---{BUSY}"))


def test_the_time_of_the_command_line_has_precedence(tmp_path: Path) -> None:
    path = write_files(tmp_path, HPA, BUSY)
    assert "at 2026-02-01 08:00:00 UTC" in shown(explain("-f", path, "--now", "2026-02-01T08:00:00Z"))


def test_an_autoscaler_that_is_younger_than_its_window_is_still_held(tmp_path: Path) -> None:
    """What holds it was recommended since its creation, so it has not left the window."""
    conditions = (
        "[{type: AbleToScale, reason: ScaleDownStabilized}, {type: ScalingLimited, reason: DesiredWithinRange}]"
    )
    status = f"status: {{currentReplicas: 2, desiredReplicas: 2, conditions: {conditions}}}\n"
    idle = BUSY.replace("270m", "90m").replace("history: {recommendations: []}", "")
    created = HPA.replace("name: web, namespace: shop", "name: web, creationTimestamp: '2026-01-31T11:58:00Z'")

    def least(hpa: str) -> int:
        found = json.loads(shown(explain("-f", write_files(tmp_path, hpa + status, idle), "--output", "json")))
        assert found["replicas"]["most"] == 2
        return int(found["replicas"]["least"])

    assert (least(HPA), least(created)) == (1, 2)


TARGET: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, resources: {requests: {cpu: 1}}}]}}
"""


def test_autoscalers_in_the_files_that_select_the_same_pods_are_reported(tmp_path: Path) -> None:
    second = HPA.replace("name: web, namespace", "name: twin, namespace")
    path = write_files(tmp_path, HPA, second, TARGET)
    assert "controlled by multiple HPAs" in shown(explain("web", "-f", path))
    answer = explain("-f", path)
    assert (answer.exit_code, answer.stderr) == (
        2,
        "error: the files hold several autoscalers; name one of: shop/web, shop/twin\n",
    )


@pytest.mark.parametrize(
    ("parts", "words", "problem"),
    [
        pytest.param((HPA,), (), "the files do not say how many replicas Deployment/shop/web has", id="no-replicas"),
        pytest.param((TARGET,), (), "the files hold no HorizontalPodAutoscaler; found: none", id="no-hpa"),
        pytest.param((HPA,), ("blog",), "hold no HorizontalPodAutoscaler blog; found: shop/web", id="another-name"),
        pytest.param(
            (HPA.replace("10", "10\n  minReplicas: 20"), BUSY),
            (),
            "the API server would reject shop/web: spec.maxReplicas: Invalid value: 10: must be greater than",
            id="invalid-hpa",
        ),
        pytest.param((HPA, BUSY, BUSY), (), "document 3: several Snapshots; give only one", id="two-snapshots"),
        pytest.param((HPA, BUSY + "pod: 3\n"), (), "Snapshot: pod: Extra inputs are not permitted", id="unknown-field"),
        pytest.param((HPA, BUSY.replace("270m", "lots")), (), "metrics.0.perPod", id="no-quantity"),
        pytest.param((HPA, BUSY.replace("270m", "[1]")), (), "perPod has 1 values for 2 pods", id="too-few-values"),
        pytest.param(
            (HPA, BUSY.replace("perPod: 270m", "total: 270m")),
            (),
            "metrics: cpu: write `perPod` for a metric of type Resource",
            id="total-of-pods",
        ),
        pytest.param(
            (HPA, BUSY.replace("500m", "many")), (), "Snapshot: pods.0.requests.cpu: 'many' is no", id="no-request"
        ),
        pytest.param(
            (HPA.replace("metadata: {name: web, namespace: shop}", "metadata: {name: web}"), BUSY.replace("[]", "5")),
            (),
            "history.recommendations: Input should be a valid list",
            id="no-history",
        ),
        pytest.param((HPA, BUSY), ("--now", "noon"), "--now must be a time like 2026-01-31T12:00:00Z", id="no-time"),
        pytest.param((HPA, BUSY), ("--watch", "5m"), "--watch needs a cluster", id="watching-files"),
        pytest.param(
            (HPA, BUSY), ("--tolerance", "x"), "--tolerance must be a number like 0.1, got 'x'", id="no-number"
        ),
        pytest.param(
            (HPA, BUSY), ("--tolerance=-1",), "tolerance of the autoscaling controller must be", id="negative"
        ),
        pytest.param((HPA, BUSY), ("--sync-period", "5"), "--sync-period must be a duration like 1m30s", id="no-unit"),
        pytest.param((HPA, BUSY), ("--picture", "w.pdf"), "--picture must end in .html or .svg", id="picture-of-what"),
        pytest.param(
            (HPA, BUSY), ("--picture", "/no/w.svg"), "--picture: the folder /no does not exist", id="picture-where"
        ),
        pytest.param((HPA, "a: ["), (), "document 2:", id="no-yaml"),
    ],
)
def test_an_error_is_one_line(tmp_path: Path, parts: tuple[str, ...], words: tuple[str, ...], problem: str) -> None:
    answer = explain(*words, "-f", write_files(tmp_path, *parts))
    assert answer.exit_code == 2
    assert problem in answer.stderr
    assert answer.stderr.count("\n") == 1


USAGE: Final = """
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetricsList
items:
- metadata: {name: web-0, namespace: shop}
  timestamp: "2026-01-31T12:00:00Z"
  window: 30s
  containers: [{name: app, usage: {cpu: 450m}}]
"""
POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, labels: {app: web}}
spec: {containers: [{name: app, resources: {requests: {cpu: 500m}}}]}
status: {phase: Running, startTime: "2026-01-31T10:00:00Z"}
"""


@pytest.mark.parametrize(
    ("part", "old", "new", "problem"),
    [
        (USAGE, "containers: [{name: app, usage: {cpu: 450m}}]", "containers: none", "containers: must be a list"),
        (USAGE, "cpu: 450m", "cpu: lots", "containers[0].usage.cpu: 'lots' is not a quantity"),
        (USAGE, "metadata: {name: web-0, namespace: shop}", "metadata: web-0", "metadata: must be a map, not 'web-0'"),
        (USAGE, "2026-01-31T12:00:00Z", "noon", "timestamp: must be a time like 2026-01-31T12:00:00Z, not 'noon'"),
        (USAGE, "- metadata", "- web-0\n- metadata", "items[0]: items of a List must be objects, got str"),
        (POD, "500m", "many", "spec.containers[0].resources.requests.cpu: 'many' is not a quantity"),
        (POD, "spec: {", "spec: 5 #", "spec: must be a map, not 5"),
        (POD, "2026-01-31T10:00:00Z", "noon", "status.startTime: must be a time like"),
        (TARGET, "replicas: 3", "replicas: three", "spec.replicas: must be an integer"),
        (TARGET, "matchLabels: {app: web}", "matchLabels: web", "matchLabels"),
        (TARGET, "cpu: 1}", "cpu: [1]}", "spec.template.spec.containers[0].resources.requests.cpu"),
        (HPA, "metrics:", "metrics: 5\n  other:", "spec.metrics: must be a list, not 5"),
        (HPA, "scaleTargetRef: {", "scaleTargetRef: {} #", "would reject shop/web: spec.scaleTargetRef.kind: Required"),
        (HPA, "metadata: {", "metadata: {} #", "would reject default/: metadata.name: Required value"),
    ],
)
def test_a_malformed_object_is_reported_with_file_path_and_value(
    tmp_path: Path, part: str, old: str, new: str, problem: str
) -> None:
    parts = {"hpa": HPA, "target": TARGET, "pod": POD, "usage": USAGE}
    wrong = [text.replace(old, new, 1) if text is part else text for text in parts.values()]
    path = write_files(tmp_path, *wrong)
    answer = explain("-f", path)
    number = list(parts.values()).index(part) + 1
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"error: {path}: document {number}: ")
    assert problem in answer.stderr
    assert answer.stderr.count("\n") == 1


OTHER: Final = TARGET.replace("name: web, namespace", "name: blog, namespace")
ROLLOUT: Final = """
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: blog, namespace: shop}
"""


@pytest.mark.parametrize(
    ("reference", "parts", "message"),
    [
        pytest.param("apps/v1, kind: Deployment", (OTHER,), 'deployments.apps "web" not found', id="name"),
        pytest.param("apps/v1, kind: StatefulSet", (TARGET,), 'statefulsets.apps "web" not found', id="other-kind"),
        pytest.param("v1, kind: ReplicationController", (TARGET,), 'replicationcontrollers "web" not found', id="core"),
        pytest.param(
            "apps/v1, kind: Deployments", (TARGET, BUSY), 'no matches for kind "Deployments" in group "apps"', id="kind"
        ),
        pytest.param(
            "extensions/v1beta1, kind: Deployment",
            (TARGET, BUSY),
            'no matches for kind "Deployment" in group "extensions"',
            id="group",
        ),
        pytest.param(
            "argoproj.io/v1alpha1, kind: Rollout", (ROLLOUT,), 'rollouts.argoproj.io "web" not found', id="custom"
        ),
    ],
)
def test_a_target_that_does_not_exist_is_what_the_controller_reports(
    tmp_path: Path, reference: str, parts: tuple[str, ...], message: str
) -> None:
    hpa = HPA.replace("apps/v1, kind: Deployment", reference)
    found = json.loads(shown(explain("-f", write_files(tmp_path, hpa, *parts), "--output", "json")))
    [able] = [each for each in found["least"]["conditions"] if each["type"] == "AbleToScale"]
    sentence = f"the HPA controller was unable to get the target's current scale: {message}"
    assert (able["status"], able["reason"], able["message"]) == ("False", "FailedGetScale", sentence)
    assert message in found["least"]["cause"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((TARGET,), id="the-target"),
        pytest.param((TARGET.replace("apps/v1", "apps/v1beta1"),), id="another-version-of-it"),
        pytest.param((OTHER, BUSY), id="a-snapshot"),
        pytest.param(
            (OTHER, "{apiVersion: v1, kind: Scale, metadata: {name: web}, spec: {replicas: 2}}"), id="its-scale"
        ),
        pytest.param((OTHER.replace("shop", "blogs"), BUSY), id="workloads-of-another-namespace"),
    ],
)
def test_a_target_that_the_files_describe_exists(tmp_path: Path, parts: tuple[str, ...]) -> None:
    found = json.loads(shown(explain("-f", write_files(tmp_path, HPA, *parts), "--output", "json")))
    assert found["replicas"]["current"] is not None


def test_a_replication_controller_can_be_the_target(tmp_path: Path) -> None:
    hpa = HPA.replace("apps/v1, kind: Deployment", "v1, kind: ReplicationController")
    target = TARGET.replace("apps/v1", "v1").replace("Deployment", "ReplicationController")
    path = write_files(tmp_path, hpa, target.replace("{matchLabels: {app: web}}", "{app: web}"))
    assert "3 replicas now" in shown(explain("-f", path))


def test_a_horizontal_autoscaler_overrides_the_settings(tmp_path: Path) -> None:
    own = HPA.replace("autoscaling/v2", "autoscaling.ocf.dev/v1alpha1").replace("HorizontalPod", "Horizontal")
    assert desired("-f", write_files(tmp_path, own, BUSY)) == 2
    strict = write_files(tmp_path, f"{own}  settings: {{tolerance: 0.01}}\n", BUSY)
    assert desired("-f", strict) == 3
    for setting, problem in (
        ("tolerance: much", "tolerance: 'much' is not a quantity"),
        ("tolerence: 0.2", 'tolerence: unknown field, did you mean "tolerance"?'),
        ("syncPeriodSeconds: soon", "syncPeriodSeconds: must be an integer"),
    ):
        wrong = explain("-f", write_files(tmp_path, f"{own}  settings: {{{setting}}}\n", BUSY))
        assert (wrong.exit_code, f"document 1: {OWN}: spec.settings.{problem}" in wrong.stderr) == (2, True)


def test_every_setting_of_a_horizontal_autoscaler_is_accepted(tmp_path: Path) -> None:
    from ocf.controllers.hpa.crd import HorizontalAutoscalerSettings

    fields = [info.alias or name for name, info in HorizontalAutoscalerSettings.model_fields.items()]
    own = HPA.replace("autoscaling/v2", "autoscaling.ocf.dev/v1alpha1").replace("HorizontalPod", "Horizontal")
    shown(
        explain(
            "-f", write_files(tmp_path, f"{own}  settings: {{{', '.join(f'{each}: 1' for each in fields)}}}\n", BUSY)
        )
    )


VALUES: Final = """
apiVersion: external.metrics.k8s.io/v1beta1
kind: ExternalMetricValueList
items: [{metricName: queues, timestamp: "2026-01-31T12:00:00Z", value: "80"}]
---
apiVersion: custom.metrics.k8s.io/v1beta2
kind: MetricValueList
items:
- describedObject: {kind: Pod, name: web-0, namespace: shop}
  metric: {name: rps}
  timestamp: "2026-01-31T12:00:00Z"
  value: "8"
"""


@pytest.mark.parametrize(
    ("part", "note"),
    [
        pytest.param(
            BUSY.replace("name: cpu, per", "name: cpuu, per"),
            'no metric of shop/web asks for "cpuu"; did you mean "cpu" (Resource)?',
            id="of-a-snapshot",
        ),
        pytest.param(
            BUSY.replace("name: cpu, per", "name: cpu, type: Pods, per"),
            'asks for "cpu" (Pods); did you mean "cpu" (Resource)?',
            id="of-another-type",
        ),
        pytest.param(
            f"{BUSY}---{VALUES}", 'asks for "queues" (External); its metrics are "cpu" (Resource)', id="external"
        ),
        pytest.param(f"{BUSY}---{VALUES}", 'asks for "rps" (Object or Pods); its metrics are "cpu"', id="custom"),
    ],
)
def test_a_reading_that_no_metric_asks_for_is_named_with_the_likely_one(tmp_path: Path, part: str, note: str) -> None:
    answer = explain("-f", write_files(tmp_path, HPA, part))
    assert answer.exit_code == 0
    assert note in answer.stderr


def test_readings_that_are_asked_for_are_not_noted(tmp_path: Path) -> None:
    assert explain("-f", write_files(tmp_path, HPA, BUSY)).stderr == ""


def test_the_role_has_the_rights_to_read_and_no_others() -> None:
    found = read_one(shown(explain("--role", "--namespace", "shop")))
    assert (found["kind"], found["metadata"]) == ("Role", {"name": "ocf-explain", "namespace": "shop"})
    granted = {
        (group, resource, verb)
        for rule in found["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert {verb for *_, verb in granted} == {"get", "list"}
    assert granted >= {
        ("", "pods", "list"),
        ("", "events", "list"),
        ("apps", "deployments/scale", "get"),
        ("autoscaling", "horizontalpodautoscalers", "get"),
        ("autoscaling.ocf.dev", "horizontalautoscalers", "list"),
        ("metrics.k8s.io", "pods", "list"),
        ("external.metrics.k8s.io", "*", "list"),
    }


def read_one(text: str) -> Any:
    [document] = read_yaml(text, "role")
    return document


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param((), "no autoscaler given: write its NAME in the cluster, or files with -f FILE", id="nothing"),
        pytest.param(("web", "--now", "2026-01-31T12:00:00Z"), "--now needs files", id="another-time"),
    ],
)
def test_options_that_exclude_each_other_are_rejected_first(words: tuple[str, ...], problem: str) -> None:
    answer = explain(*words)
    assert (answer.exit_code, problem in answer.stderr) == (2, True)


class TestPicture:
    @pytest.mark.parametrize("name", ["held", "unknown-history"])
    @pytest.mark.parametrize(("ending", "start"), [(".svg", "<?xml"), (".html", "<!doctype html>")])
    def test_each_format_is_written_and_needs_nothing_from_elsewhere(
        self, tmp_path: Path, name: str, ending: str, start: str
    ) -> None:
        path = tmp_path / f"window{ending}"
        shown(explain("-f", str(FOLDER / f"{name}.yaml"), "--picture", str(path)))
        content = path.read_text(encoding="utf-8")
        assert content.startswith(start)
        assert "<script" not in content
        assert not re.search(r'(?:src|href)="', content)

    def test_the_page_has_the_explanation_and_the_chart(self, tmp_path: Path) -> None:
        path = tmp_path / "window.html"
        shown(explain("-f", str(FOLDER / "held.yaml"), "--picture", str(path)))
        text = path.read_text(encoding="utf-8")
        for words in ("shop/web scales Deployment web", 'role="img"', "wanted: 2", "The hold ends after 12:01:40"):
            assert words in text

    def test_the_chart_of_a_range_is_the_one_with_the_hold(self, tmp_path: Path) -> None:
        path = tmp_path / "window.svg"
        shown(explain("-f", str(FOLDER / "unknown-history.yaml"), "--picture", str(path)))
        assert "if the history permits the most" in path.read_text(encoding="utf-8")

    def test_without_a_window_there_is_a_page_but_no_chart(self, tmp_path: Path) -> None:
        path = tmp_path / "window.svg"
        answer = explain("-f", str(FOLDER / "paused.yaml"), "--picture", str(path))
        assert (answer.exit_code, path.exists()) == (2, False)
        assert "there is no recommendation window to draw" in answer.stderr
        page = tmp_path / "window.html"
        shown(explain("-f", str(FOLDER / "paused.yaml"), "--picture", str(page)))
        assert "switches autoscaling off" in page.read_text(encoding="utf-8")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(FOLDER.parents[3])}
    command = [sys.executable, "-c", "from ocf.cli import main; main()", "explain", "-f", str(FOLDER / "held.yaml")]
    done = subprocess.run(command, capture_output=True, check=True, env=environment)  # noqa: S603 (ours)
    assert done.stdout.isascii()
    assert b"o recommended, @ holds, - size now" in done.stdout


def test_slow_libraries_are_not_imported_for_files() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from ocf.cli.app import app;"
        f"CliRunner().invoke(app, ['explain', '-f', {str(FOLDER / 'held.yaml')!r}]);"
        "print([name for name in ('kubernetes', 'aiohttp', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("version", "release"), [("v2beta1", "1.25"), ("v2beta2", "1.26")])
def test_an_old_autoscaler_is_explained_with_a_note(tmp_path: Path, version: str, release: str) -> None:
    old = HPA.replace("autoscaling/v2", f"autoscaling/{version}")
    if version == "v2beta1":
        old = re.sub(r"target: \{type: Utilization, averageUtilization: (\d+)\}", r"targetAverageUtilization: \1", old)
    path = write_files(tmp_path, old, BUSY)
    answer = explain("-f", path)
    assert answer.exit_code == 0, answer.output
    note = f"autoscaling/{version} is not served by Kubernetes {release} and newer"
    assert note in " ".join((answer.stdout + answer.stderr).split())
    assert desired("-f", path) == desired("-f", write_files(tmp_path, HPA, BUSY))


def test_a_misspelt_kind_is_an_error(tmp_path: Path) -> None:
    answer = explain("-f", write_files(tmp_path, HPA.replace("kind: Horizontal", "kind: Horizantal"), BUSY))
    assert answer.exit_code == 2
    assert "write HorizontalPodAutoscaler" in answer.stderr
