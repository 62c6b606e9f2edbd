"""Specs of Kubernetes' end-to-end tests: their names, and the result of one on a server."""

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from ocf.testing.envtest.binaries import Program, find_programs
from scripts.e2e_suite.build import build_suite

__all__ = ["NOT_RUN", "PASSED", "names_of_specs", "run_spec"]

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


def run_spec(kubeconfig: str, name: str) -> str:
    """Run a spec on a server.

    Args:
        kubeconfig: The path of the kubeconfig of the server.
        name: The name of the spec.

    Returns:
        `passed`, or the end of the text of the failure.
    """
    programs = find_programs()
    assert programs is not None  # noqa: S101 (the control plane needs them too)
    flags = {
        "delete-namespace": "false",
        "dump-logs-on-failure": "false",
        "e2e-verify-service-account": "false",
        "ginkgo.focus": f"{re.escape(name)}$",
        "ginkgo.grace-period": "5s",
        "ginkgo.timeout": f"{LIMIT}s",
        "kubeconfig": kubeconfig,
        "kubectl-path": str(programs.path(Program.KUBECTL)),
    }
    found = {name_of(report): result_of(report) for report in ginkgo(flags)}
    return found.get(name, NOT_RUN)


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


def result_of(report: Any) -> str:
    """Return the result of a spec from its report.

    Example:
        >>> result_of({"State": "passed"})
        'passed'
        >>> result_of({"State": "failed", "Failure": {"Message": "no nodes"}})
        'no nodes'
    """
    state: str = report["State"]
    if state == "timedout":
        return f"did not end in {LIMIT} s"
    message = " ".join(report.get("Failure", {}).get("Message", "").split())
    return message[-LONGEST:] if state != PASSED and message else state
