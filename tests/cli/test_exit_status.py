"""Exit statuses: one table in the code, the same one on the page, and every command keeps to it."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli import main
from ocf.cli.app import GROUPS, app
from ocf.cli.exit_status import FAILED, FOUND, FOUND_BY, INTERRUPTED, MEANINGS, SUCCESS

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
COMMANDS: Final = [name for names in GROUPS.values() for name in names]
HPA: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: %s
"""
UNREACHABLE: Final = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none, namespace: shop}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""
OPERATOR: Final = """
from ocf.component import Builder

def components(owner):
    return []
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with a file for every case."""
    (tmp_path / "good.yaml").write_text(HPA % 3)
    (tmp_path / "fixed.yaml").write_text(f"{HPA % 3}  minReplicas: 3\n")
    (tmp_path / "bad.yaml").write_text(HPA % 0)
    (tmp_path / "undecodable.yaml").write_text(HPA % "[]")
    (tmp_path / "text.yaml").write_text("just a text")
    (tmp_path / "empty").mkdir()
    (tmp_path / "kubeconfig").write_text(UNREACHABLE)
    (tmp_path / "exit_status_operator.py").write_text(OPERATOR)
    (tmp_path / "shop.yaml").write_text("{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: b}}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("exit_status_operator", None)


def run(words: str) -> tuple[int, str]:
    """Run a command; return its exit status, and what it wrote to the standard error."""
    done = CliRunner().invoke(app, words.split(), env={"KUBECONFIG": "kubeconfig"})
    return done.exit_code, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_does_not_exist_is_a_failure(command: str) -> None:
    status, error = run(f"{command} --no-such-option")
    assert status == FAILED
    assert f"Usage: ocf {command}" in error
    assert "No such option: --no-such-option" in error


@pytest.mark.parametrize("words", ["", "nope", "--nope", "new", "new nope"])
def test_an_invalid_command_line_is_a_failure(words: str) -> None:
    assert run(words)[0] == FAILED


MISSING: Final = {
    "validate": "validate gone.yaml",
    "validate beside an invalid file": "validate bad.yaml gone.yaml",
    "validate an empty folder": "validate empty",
    "validate as an update": "validate good.yaml --update-from gone.yaml",
    "default": "default gone.yaml",
    "default beside an invalid file": "default bad.yaml gone.yaml",
    "explain": "explain -f gone.yaml",
    "record": "record web --output gone/web.jsonl",
    "preview": "preview exit_status_operator:components --owner gone.yaml",
    "preview of a missing module": "preview gone --owner shop.yaml",
    "diff": "diff exit_status_operator:components --owner gone.yaml",
    "serve": "serve --load gone.yaml",
    "envtest-assets": "envtest-assets good.yaml/assets",
    "dev": "dev gone.py",
    "run": "run gone.py",
    "manifests": "manifests gone --directory deploy",
    "nodegroups": "nodegroups plan gone.yaml --types gone.yaml",
    "simulate": "simulate gone.yaml --no-report",
    "tune": "tune gone.yaml --search spec.minReplicas=1..2 --no-report",
    "hpa-controller": "hpa-controller migrate web --kubeconfig gone",
    "new operator": "new operator shop --directory good.yaml/shop",
    "new kind": "new kind gone.yaml",
}


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in MISSING.items()])
def test_a_missing_file_is_a_failure(words: str) -> None:
    assert run(words)[0] == FAILED


def test_every_command_that_reads_or_writes_files_is_in_the_table_of_missing_files() -> None:
    named = {command for command in COMMANDS for words in MISSING.values() if words.startswith(f"{command} ")}
    assert named == {*COMMANDS} - {"completion"}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        pytest.param("validate good.yaml", SUCCESS, id="validate, valid"),
        pytest.param("validate bad.yaml", FOUND, id="validate, invalid"),
        pytest.param("validate undecodable.yaml", FOUND, id="validate, cannot be decoded"),
        pytest.param("validate text.yaml", SUCCESS, id="validate, something else"),
        pytest.param("validate fixed.yaml --lint --fail-on warning", FOUND, id="validate, findings"),
        pytest.param("validate good.yaml --kubernetes-version 99.9.9.9", FAILED, id="validate, invalid value"),
        pytest.param("default good.yaml", SUCCESS, id="default, valid"),
        pytest.param("default bad.yaml", FOUND, id="default, invalid"),
        pytest.param("explain -f text.yaml", FAILED, id="explain"),
        pytest.param("simulate text.yaml --no-report", FAILED, id="simulate"),
        pytest.param("tune text.yaml --search spec.minReplicas=1..2 --no-report", FAILED, id="tune"),
        pytest.param("preview exit_status_operator:components --owner text.yaml", FAILED, id="preview"),
        pytest.param("diff exit_status_operator:components --owner text.yaml", FAILED, id="diff"),
        pytest.param("manifests exit_status_operator --directory deploy", FAILED, id="manifests"),
        pytest.param("dev exit_status_operator", FAILED, id="dev"),
        pytest.param("run exit_status_operator", FAILED, id="run"),
        pytest.param("serve --load text.yaml", FAILED, id="serve"),
        pytest.param("new operator No_Name", FAILED, id="new operator"),
        pytest.param("new kind good.yaml", FAILED, id="new kind"),
        pytest.param("nodegroups plan text.yaml --types text.yaml", FAILED, id="nodegroups"),
        pytest.param("hpa-controller --sync-period never", FAILED, id="hpa-controller"),
        pytest.param("record web --every never --output web.jsonl", FAILED, id="record"),
        pytest.param("completion sh", FAILED, id="completion"),
        pytest.param("completion bash", SUCCESS, id="completion, valid"),
        pytest.param("--version", SUCCESS, id="version"),
        pytest.param("--help", SUCCESS, id="help"),
    ],
)
def test_the_status_of_valid_and_invalid_input(words: str, status: int) -> None:
    assert run(words)[0] == status


@pytest.mark.parametrize(
    "words",
    [
        "explain web",
        "record web --output web.jsonl",
        "diff exit_status_operator:components --owner shop.yaml",
        "simulate --init --name web --namespace shop",
        "nodegroups plan --provider cluster-api",
        "hpa-controller migrate web",
    ],
)
def test_an_unreachable_cluster_is_a_failure(words: str) -> None:
    status, error = run(words)
    assert status == FAILED
    assert "Cannot connect to host 127.0.0.1:1" in error


class Closed:
    """A standard output whose reader has ended."""

    encoding = "utf-8"

    def write(self, _text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        """Write nothing."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1


def status_of_process(monkeypatch: pytest.MonkeyPatch, words: str) -> object:
    """Return the exit status of the program with a command line."""
    monkeypatch.setattr(sys, "argv", ["ocf", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("--help", id="overview"),
        pytest.param("--version", id="version"),
        pytest.param("validate --help", id="help"),
        pytest.param("validate bad.yaml", id="validate"),
        pytest.param("validate bad.yaml --output json --traceback", id="validate by the library"),
        pytest.param("default good.yaml", id="default"),
        pytest.param("completion bash", id="completion"),
        pytest.param("hpa-controller manifests", id="manifests"),
    ],
)
def test_a_reader_that_has_ended_has_a_status_of_its_own(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not mistaken for a finding: `ocf validate | head` may have printed only valid objects."""
    monkeypatch.setattr(sys, "stdout", Closed())
    assert status_of_process(monkeypatch, words) == 128 + 13


def test_an_error_with_a_traceback_has_the_status_of_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python would exit with 1, the status of a finding."""
    assert status_of_process(monkeypatch, "nodegroups try --traceback") == FAILED
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert "ConfigError: try needs files with a NodeGroup" in shown


@pytest.mark.parametrize("words", ["validate good.yaml", "default good.yaml", "explain -f good.yaml"])
def test_an_interrupt_has_the_status_of_its_signal(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ocf.cli.manifest_files._of", interrupt)
    assert status_of_process(monkeypatch, words) == 128 + 2


def test_the_output_that_cannot_be_written_at_the_end_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What fits into the buffer is written when the program ends."""

    class Full(Closed):
        def write(self, _text: str) -> int:
            return len(_text)

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

        def fileno(self) -> int:
            return stream.fileno()

    with Path("full").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", Full())
        assert status_of_process(monkeypatch, "--version") == FAILED
    assert "error: the output cannot be written: No space left on device" in capsys.readouterr().err


def test_only_commands_that_find_something_have_a_meaning_of_1() -> None:
    assert {*FOUND_BY} <= {*COMMANDS}
    assert INTERRUPTED in MEANINGS


def test_the_page_has_the_statuses_and_the_meaning_of_1_of_each_command() -> None:
    rows = re.findall(r"^\| `?([\w-]+)`? \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: meaning.replace("`", "") for name, meaning in rows}
    assert {int(name): text for name, text in documented.items() if name.isdigit()} == MEANINGS
    found = re.findall(
        r"^\| `ocf ([\w-]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8").split("## Exit statuses")[1], re.MULTILINE
    )
    assert {name: text.replace("`", "") for name, text in found} == FOUND_BY
