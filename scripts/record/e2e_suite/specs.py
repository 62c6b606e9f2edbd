"""Specs of Kubernetes' end-to-end tests: their names, and the result of one on a server."""

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.testing.envtest.binaries import Program, find_programs
from scripts.record.e2e_suite.build import build_suite

__all__ = ["NOT_RUN", "PASSED", "Outcome", "names_of_specs", "run_spec", "run_specs"]

NEED_PODS: Final = (
    "AdmissionWebhook",
    "CustomResourceConversionWebhook",
    "CustomResourceFieldSelectors",
    "sample-apiserver",
    "Aggregated APIServer",
)
LONGEST: Final = 300  # characters of a failure
LIMIT: Final = 180  # seconds of a spec; the slowest one takes two minutes on a real control plane
PASSED: Final = "passed"
NOT_RUN: Final = "not run"


def names_of_specs(focus: str) -> list[str]:
    """Return the names of the specs that a regular expression selects, without those that need running pods."""
    return sorted(name_of(report) for report in ginkgo({"ginkgo.dry-run": "true", "ginkgo.focus": focus}))


class Outcome(NamedTuple):
    """The outcome of a spec.

    Args:
        result: `passed`, or the end of the text of the failure.
        seconds: How long it took, in whole seconds.
    """

    result: str
    seconds: int = 0


def run_spec(kubeconfig: str, name: str) -> Outcome:
    """Run a spec on a server.

    Args:
        kubeconfig: The path of the kubeconfig of the server.
        name: The name of the spec.
    """
    return run_specs(kubeconfig, [name])[name]


def run_specs(kubeconfig: str, names: Sequence[str], *, limit: int = LIMIT) -> dict[str, Outcome]:
    """Run specs on a server in one process, one after another.

    Args:
        kubeconfig: The path of the kubeconfig of the server.
        names: The names of the specs.
        limit: Seconds after which the rest is not run.

    Returns:
        The outcomes, by name.
    """
    programs = find_programs()
    assert programs is not None  # noqa: S101 (the control plane needs them too)
    flags = {
        "delete-namespace": "false",
        "dump-logs-on-failure": "false",
        "e2e-verify-service-account": "false",
        "ginkgo.focus": f"({'|'.join(map(re.escape, names))})$",
        "ginkgo.grace-period": "5s",
        "ginkgo.timeout": f"{limit}s",
        "kubeconfig": kubeconfig,
        "kubectl-path": str(programs.path(Program.KUBECTL)),
    }
    found = {name_of(report): outcome_of(report, limit) for report in ginkgo(flags)}
    return {name: found.get(name, Outcome(NOT_RUN)) for name in names}


def ginkgo(flags: dict[str, str]) -> list[Any]:
    """Run the program of the specs; return the reports of those that were not skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        given = {
            **flags,
            "ginkgo.json-report": str(report),
            "ginkgo.silence-skips": "true",
            "ginkgo.skip": "|".join(NEED_PODS),
            "provider": "local",
        }
        command = [str(build_suite()), *(f"-{name}={value}" for name, value in given.items())]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603 (just built)
        suites = json.loads(report.read_text(encoding="utf-8"))
    return [spec for spec in suites[0]["SpecReports"] if spec["LeafNodeType"] == "It" and spec["State"] != "skipped"]


def name_of(report: Any) -> str:
    """Return the name of a spec from its report.

    Example:
        >>> name_of({"ContainerHierarchyTexts": ["Watchers"], "LeafNodeText": "work"})
        'Watchers work'
    """
    return " ".join([*report["ContainerHierarchyTexts"], report["LeafNodeText"]])


def outcome_of(report: Any, limit: int = LIMIT) -> Outcome:
    """Return the outcome of a spec from its report.

    Example:
        >>> outcome_of({"State": "passed", "RunTime": 1_600_000_000})
        Outcome(result='passed', seconds=2)
        >>> outcome_of({"State": "failed", "RunTime": 0, "Failure": {"Message": "no nodes"}}).result
        'no nodes'
    """
    state: str = report["State"]
    seconds = round(report["RunTime"] / 1e9)
    if state == "timedout":
        return Outcome(f"did not end in {limit} s", seconds)
    message = " ".join(report.get("Failure", {}).get("Message", "").split())
    return Outcome(message[-LONGEST:] if state != PASSED and message else state, seconds)
