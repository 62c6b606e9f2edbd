"""`ocf explain` says what an autoscaler of files does, and why, and what would have to change."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from ocf.cli.app import app

OWN: Final = "HorizontalAutoscaler"
FOLDER: Final = Path(__file__).parent / "data"
SITUATIONS: Final = sorted(each.stem for each in FOLDER.glob("*.yaml"))
PAGE: Final = (FOLDER.parents[3] / "docs" / "explain-hpa.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_is_told_as_it_was_before(name: str, *, update: bool) -> None:
    compare(FOLDER / f"{name}.txt", shown(explain("-f", str(FOLDER / f"{name}.yaml"))), update=update)


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_line_is_wider_than_a_terminal_unless_a_word_is(name: str) -> None:
    for line in shown(explain("-f", str(FOLDER / f"{name}.yaml"))).splitlines():
        assert len(line) <= 80 or len(line.split()) == 1


@pytest.mark.parametrize("name", AS_JSON)
def test_programs_get_it_as_they_did_before(name: str, *, update: bool) -> None:
    text = shown(explain("-f", str(FOLDER / f"{name}.yaml"), "--output", "json"))
    compare(FOLDER / f"{name}.json", text, update=update)


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys; those of Kubernetes' own objects are its business."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}{key}"
            if key not in {"conditions", "observed"}:
                yield from keys(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{path[:-1]}[].")


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_key_is_in_the_page(name: str) -> None:
    """What programs may rely on is written down; nothing appears that is not."""
    told = set(re.findall(r"`([A-Za-z.[\]]+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))))
    found = json.loads(shown(explain("-f", str(FOLDER / f"{name}.yaml"), "--output", "json")))
    assert {alike(key) for key in keys(found)} <= told | {"least"}


def alike(key: str) -> str:
    """Return the key that stands for several of the same form."""
    key = re.sub(r"^most\b", "least", key)
    key = key.replace("policies.down[]", "policies.up[]").replace("noFewerBecause.", "noMoreBecause.")
    return key.replace("scaleDowns[]", "scaleUps[]")


SESSION: Final = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    steps = [step for session in SESSION.findall(PAGE) for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]]
    for step in steps:
        command, _, output = step.partition("\n")
        program, *words = command.split()
        if program == "cat":
            Path(words[0]).write_text(output)
        else:
            assert (program, words[0]) == ("ocf", "explain")
            assert shown(explain(*words[1:])) == output
    assert len(steps) == 5


def test_every_option_is_on_the_page() -> None:
    usage = CliRunner().invoke(app, ["explain", "--help"], env={"COLUMNS": "200"}).stdout
    offered = set(re.findall(r"--[a-z-]+", usage)) - {"--help", "--traceback", "--kubeconfig", "--context", "--file"}
    assert offered <= set(re.findall(r"--[a-z-]+", PAGE))


def situation(tmp_path: Path, *parts: str) -> str:
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
kind: Situation
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
def test_the_settings_of_the_controller_count(tmp_path: Path, options: tuple[str, ...], expected: int) -> None:
    assert desired("-f", situation(tmp_path, HPA, BUSY), *options) == expected


def test_the_window_of_shrinking_counts(tmp_path: Path) -> None:
    idle = BUSY.replace("270m", "90m").replace("[]", "[{replicas: 2, ago: 4m}]")
    path = situation(tmp_path, HPA, idle)
    assert (desired("-f", path), desired("-f", path, "--downscale-stabilization", "3m")) == (2, 1)


def test_the_release_counts(tmp_path: Path) -> None:
    """Tolerance of an HPA is on from 1.35."""
    strict = HPA + "  behavior: {scaleUp: {tolerance: '0'}}\n"
    path = situation(tmp_path, strict, BUSY)
    assert (desired("-f", path), desired("-f", path, "--kubernetes-version", "1.34")) == (3, 2)
    assert desired("-f", path, "--kubernetes-version", "1.34", "--feature-gate", "HPAConfigurableTolerance=true") == 3


def test_the_standard_input_is_a_file() -> None:
    assert "2 replicas next" in shown(explain("-f", "-", stdin=f"{HPA}---{BUSY}"))


def test_a_time_of_the_command_line_comes_first(tmp_path: Path) -> None:
    path = situation(tmp_path, HPA, BUSY)
    assert "at 2026-02-01 08:00:00 UTC" in shown(explain("-f", path, "--now", "2026-02-01T08:00:00Z"))


TARGET: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, resources: {requests: {cpu: 1}}}]}}
"""


def test_two_autoscalers_of_the_files_that_count_the_same_pods(tmp_path: Path) -> None:
    second = HPA.replace("name: web, namespace", "name: twin, namespace")
    path = situation(tmp_path, HPA, second, TARGET)
    assert "controlled by multiple HPAs" in shown(explain("web", "-f", path))
    refused = explain("-f", path)
    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: the files hold several autoscalers; name one of: shop/web, shop/twin\n",
    )


@pytest.mark.parametrize(
    ("parts", "words", "problem"),
    [
        pytest.param((HPA,), (), "the files do not say how many replicas Deployment/shop/web has", id="no-replicas"),
        pytest.param((TARGET,), (), "the files hold no HorizontalPodAutoscaler; there are: none", id="no-hpa"),
        pytest.param((HPA,), ("blog",), "hold no HorizontalPodAutoscaler blog; there are: shop/web", id="another-name"),
        pytest.param(
            (HPA.replace("10", "10\n  minReplicas: 20"), BUSY),
            (),
            "the API server would refuse shop/web: spec.maxReplicas: Invalid value: 10: must be greater than",
            id="invalid-hpa",
        ),
        pytest.param((HPA, BUSY, BUSY), (), "document 3: there is another Situation; give one", id="two-situations"),
        pytest.param(
            (HPA, BUSY + "pod: 3\n"), (), "Situation: pod: Extra inputs are not permitted", id="unknown-field"
        ),
        pytest.param((HPA, BUSY.replace("270m", "lots")), (), "metrics.0.perPod", id="no-quantity"),
        pytest.param((HPA, BUSY.replace("270m", "[1]")), (), "perPod has 1 values for 2 pods", id="too-few-values"),
        pytest.param(
            (HPA, BUSY.replace("perPod: 270m", "total: 270m")),
            (),
            "metrics: cpu: write `perPod` for a metric of type Resource",
            id="total-of-pods",
        ),
        pytest.param(
            (HPA, BUSY.replace("500m", "many")), (), "Situation: pods.0.requests.cpu: 'many' is no", id="no-request"
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
            (HPA, BUSY), ("--tolerance", "x"), "--tolerance must be a number like 0.1, not 'x'", id="no-number"
        ),
        pytest.param(
            (HPA, BUSY), ("--tolerance=-1",), "tolerance of the autoscaling controller must be", id="negative"
        ),
        pytest.param((HPA, BUSY), ("--sync-period", "5"), "--sync-period must be a duration like 1m30s", id="no-unit"),
        pytest.param(
            (HPA, BUSY), ("--picture", "w.pdf"), "--picture must end in .svg, .png, .html", id="picture-of-what"
        ),
        pytest.param((HPA, BUSY), ("--picture", "/no/w.svg"), "--picture: there is no folder /no", id="picture-where"),
        pytest.param((HPA, "a: ["), (), "document 2:", id="no-yaml"),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path, parts: tuple[str, ...], words: tuple[str, ...], problem: str
) -> None:
    answer = explain(*words, "-f", situation(tmp_path, *parts))
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
        (USAGE, "cpu: 450m", "cpu: lots", "containers[0].usage.cpu: 'lots' is no quantity"),
        (USAGE, "metadata: {name: web-0, namespace: shop}", "metadata: web-0", "metadata: must be a map, not 'web-0'"),
        (USAGE, "2026-01-31T12:00:00Z", "noon", "timestamp: must be a time like 2026-01-31T12:00:00Z, not 'noon'"),
        (USAGE, "- metadata", "- web-0\n- metadata", "PodMetricsList: items[0]: must be a map, not 'web-0'"),
        (POD, "500m", "many", "spec.containers[0].resources.requests.cpu: 'many' is no quantity"),
        (POD, "spec: {", "spec: 5 #", "spec: must be a map, not 5"),
        (POD, "2026-01-31T10:00:00Z", "noon", "status.startTime: must be a time like"),
        (TARGET, "replicas: 3", "replicas: three", "spec.replicas: must be an integer"),
        (TARGET, "matchLabels: {app: web}", "matchLabels: web", "matchLabels"),
        (TARGET, "cpu: 1}", "cpu: [1]}", "spec.template.spec.containers[0].resources.requests.cpu"),
        (HPA, "metrics:", "metrics: 5\n  other:", "spec.metrics: must be a list, not 5"),
        (HPA, "scaleTargetRef: {", "scaleTargetRef: {} #", "would refuse shop/web: spec.scaleTargetRef.kind: Required"),
        (HPA, "metadata: {", "metadata: {} #", "would refuse default/: metadata.name: Required value"),
    ],
)
def test_what_is_malformed_is_named_with_its_place_path_and_value(
    tmp_path: Path, part: str, old: str, new: str, problem: str
) -> None:
    parts = {"hpa": HPA, "target": TARGET, "pod": POD, "usage": USAGE}
    wrong = [text.replace(old, new, 1) if text is part else text for text in parts.values()]
    path = situation(tmp_path, *wrong)
    answer = explain("-f", path)
    number = list(parts.values()).index(part) + 1
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"error: {path}: document {number}: ")
    assert problem in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_the_pods_of_a_replication_controller_are_found(tmp_path: Path) -> None:
    hpa = HPA.replace("apps/v1, kind: Deployment", "v1, kind: ReplicationController")
    target = TARGET.replace("apps/v1", "v1").replace("Deployment", "ReplicationController")
    path = situation(tmp_path, hpa, target.replace("{matchLabels: {app: web}}", "{app: web}"))
    assert "3 replicas now" in shown(explain("-f", path))


def test_an_autoscaler_of_our_own_kind_has_settings_of_its_own(tmp_path: Path) -> None:
    own = HPA.replace("autoscaling/v2", "autoscaling.ocf.dev/v1alpha1").replace("HorizontalPod", "Horizontal")
    assert desired("-f", situation(tmp_path, own, BUSY)) == 2
    strict = situation(tmp_path, f"{own}  settings: {{tolerance: 0.01}}\n", BUSY)
    assert desired("-f", strict) == 3
    for said, problem in (
        ("tolerance: much", "tolerance: 'much' is no quantity"),
        ("tolerence: 0.2", 'tolerence: unknown field, did you mean "tolerance"?'),
        ("syncPeriodSeconds: soon", "syncPeriodSeconds: must be an integer"),
    ):
        wrong = explain("-f", situation(tmp_path, f"{own}  settings: {{{said}}}\n", BUSY))
        assert (wrong.exit_code, f"document 1: {OWN}: spec.settings.{problem}" in wrong.stderr) == (2, True)


def test_every_setting_of_our_own_kind_is_known(tmp_path: Path) -> None:
    from ocf.controllers.hpa.crd import HorizontalAutoscalerSettings

    fields = [info.alias or name for name, info in HorizontalAutoscalerSettings.model_fields.items()]
    own = HPA.replace("autoscaling/v2", "autoscaling.ocf.dev/v1alpha1").replace("HorizontalPod", "Horizontal")
    shown(
        explain("-f", situation(tmp_path, f"{own}  settings: {{{', '.join(f'{each}: 1' for each in fields)}}}\n", BUSY))
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param((), "which autoscaler? give its NAME in the cluster, or files with -f FILE", id="nothing"),
        pytest.param(("web", "--now", "2026-01-31T12:00:00Z"), "--now is for files", id="another-time"),
    ],
)
def test_what_does_not_go_together_is_refused_first(words: tuple[str, ...], problem: str) -> None:
    answer = explain(*words)
    assert (answer.exit_code, problem in answer.stderr) == (2, True)


class TestPicture:
    @pytest.mark.parametrize("name", ["held", "unknown-history"])
    @pytest.mark.parametrize(
        ("ending", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".html", b"<!doctype html>")]
    )
    def test_each_format_is_written(self, tmp_path: Path, name: str, ending: str, start: bytes) -> None:
        path = tmp_path / f"window{ending}"
        shown(explain("-f", str(FOLDER / f"{name}.yaml"), "--picture", str(path)))
        content = path.read_bytes()
        assert content.startswith(start)
        assert b"<script" not in content
        assert not re.search(rb'(?:src|href)="(?!#)', content)

    def test_it_says_what_is_to_be_seen(self, tmp_path: Path) -> None:
        path = tmp_path / "window.svg"
        shown(explain("-f", str(FOLDER / "held.yaml"), "--picture", str(path)))
        text = path.read_text(encoding="utf-8")
        for word in ("shop/web: 5 replicas, 5 next", "wanted: 2", "window of shrinking: 300s", "holds", "12:00"):
            assert word in text

    def test_the_same_picture_is_the_same_file(self, tmp_path: Path) -> None:
        written = []
        for name in ("one.svg", "two.svg"):
            shown(explain("-f", str(FOLDER / "held.yaml"), "--picture", str(tmp_path / name)))
            written.append((tmp_path / name).read_bytes())
        assert written[0] == written[1]

    def test_without_a_window_there_is_none(self, tmp_path: Path) -> None:
        path = tmp_path / "window.svg"
        answer = explain("-f", str(FOLDER / "paused.yaml"), "--picture", str(path))
        assert (answer.exit_code, path.exists()) == (2, False)
        assert "there is no recommendation window to be drawn" in answer.stderr

    def test_without_the_library_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("ocf.cli.explain.chart.find_spec", lambda _: None)
        answer = explain("-f", str(FOLDER / "held.yaml"), "--picture", str(tmp_path / "window.svg"))
        assert (answer.exit_code, answer.stderr.split(": ")[-1]) == (2, "pip install 'ocf[plots]'\n")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(FOLDER.parents[3])}
    command = [sys.executable, "-c", "from ocf.cli import main; main()", "explain", "-f", str(FOLDER / "held.yaml")]
    done = subprocess.run(command, capture_output=True, check=True, env=environment)  # noqa: S603 (ours)
    assert done.stdout.isascii()
    assert b"o recommended, @ holds, - size now" in done.stdout


def test_what_is_heavy_is_not_loaded_for_files() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from ocf.cli.app import app;"
        f"CliRunner().invoke(app, ['explain', '-f', {str(FOLDER / 'held.yaml')!r}]);"
        "print([name for name in ('matplotlib', 'kubernetes', 'aiohttp', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "[]"
