"""Kubernetes' own end-to-end tests of the API machinery: the results that `scripts/record/e2e.py` recorded.

A spec that passes on a real control plane passes on `ocf serve` too, unless `docs/testing/serve.md` has a reason. The
quick ones are run.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest.binaries import find_programs
from scripts.record.e2e_suite.build import suite
from scripts.record.e2e_suite.servers import embedded_server
from scripts.record.e2e_suite.specs import PASSED, run_specs
from tests.clients.support import leave_out

HERE: Final = Path(__file__).parent
RECORDED: Final = json.loads((HERE / "e2e.json").read_text(encoding="utf-8"))
SPECS: Final[dict[str, dict[str, Any]]] = RECORDED["specs"]
PAGE: Final = (HERE.parents[1] / "docs" / "testing" / "serve.md").read_text(encoding="utf-8")
HEADING: Final = "### Kubernetes' own tests\n"
ON_REAL: Final = {name: spec for name, spec in SPECS.items() if spec["real"] == "passed"}
DIFFERENT: Final = {name: spec for name, spec in ON_REAL.items() if spec["embedded"] != "passed"}
QUICK: Final = sorted(name for name, spec in SPECS.items() if spec["embedded"] == PASSED and spec["seconds"] <= 1)
LIMIT: Final = 600  # seconds; usually they take less than one minute


def section() -> str:
    _, _, rest = PAGE.partition(HEADING)
    return re.split(r"^#", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_the_results_are_of_the_release_that_the_server_imitates() -> None:
    assert RECORDED["kubernetes"] == KUBERNETES_VERSION


def test_every_spec_ran_on_both_servers() -> None:
    assert not [name for name, spec in SPECS.items() if "not run" in (spec["real"], spec["embedded"])]


def test_a_spec_that_passes_on_a_real_server_passes_or_has_a_reason() -> None:
    assert {name: spec["embedded"] for name, spec in DIFFERENT.items() if not spec.get("reason")} == {}


def test_only_a_difference_has_a_reason() -> None:
    assert {name for name, spec in SPECS.items() if "reason" in spec} == DIFFERENT.keys()


def test_the_page_has_each_reason_and_the_number_of_its_specs() -> None:
    rows = re.findall(r"^\| (.+?) \| (\d+) \|$", section(), flags=re.MULTILINE)
    reasons = [spec["reason"] for spec in DIFFERENT.values()]
    assert {reason: int(number) for reason, number in rows} == {each: reasons.count(each) for each in reasons}


def test_the_page_has_the_number_of_specs_that_pass() -> None:
    assert f"{len(ON_REAL) - len(DIFFERENT)} of the {len(ON_REAL)} specs" in " ".join(section().split())


def test_the_quick_specs_pass_on_the_embedded_server() -> None:
    if find_programs() is None or not suite().exists():
        leave_out()
    with embedded_server() as kubeconfig:
        outcomes = run_specs(kubeconfig, QUICK, limit=LIMIT)
    assert {name: each.result for name, each in outcomes.items() if each.result != PASSED} == {}
