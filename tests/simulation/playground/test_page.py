"""The playground in a browser: the same numbers as in a terminal, the curve, problems, links, and who can use it.

`make playground` builds it. Without it these tests are skipped, unless `OCF_REQUIRE` lists `playground`.
"""

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from scripts.generate.playground import built_folder
from tests.browser import SUFFICIENT_CONTRAST, contrast, luminance
from tests.requirements import leave_out
from tests.simulation.playground.visit import GIVEN, Visit, visited

TITLES: Final = ("Load and capacity, load units per second", "Replicas", "Pods", "Utilization of the target")


@pytest.fixture(scope="module")
def visit(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    built = built_folder()
    if not built.exists():
        leave_out("playground", "the playground is not built: `make playground` builds it")
    return asyncio.run(visited(chromium, built, tmp_path_factory.mktemp("browser")))


def shown(visit: Visit, step: str) -> Any:
    return visit.shown[step]


def test_until_python_is_loaded_the_page_shows_the_recorded_result_of_the_example(visit: Visit) -> None:
    recorded, simulated = shown(visit, "recorded"), shown(visit, "opened")
    assert re.fullmatch(r"(Loading|Starting) Python; the result is recorded", recorded["status"])
    for part in ("values", "titles", "actions", "lines", "slider", "problems", "old"):
        assert recorded[part] == simulated[part], part


def test_the_page_simulates_an_example_when_it_is_opened(visit: Visit) -> None:
    found = shown(visit, "opened")
    assert re.fullmatch(r"web: 480 syncs, \d+ scaling actions, overload time .*", found["status"])
    assert set(TITLES) < {*found["titles"]}
    assert found["problems"] == []
    assert len(found["actions"]) > 5
    assert not found["old"]


def test_the_browser_has_the_numbers_of_the_terminal(
    visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(visit.csv) == 3
    for name, files in visit.files.items():
        for file, text in files.items():
            Path(file).write_text(text, encoding="utf-8")
        done = CliRunner().invoke(app, ["simulate", "scenario.yaml", "--no-report", "--csv", "out.csv"])
        assert done.exit_code == 0, done.output
        assert visit.csv[name] == Path("out.csv").read_text(encoding="utf-8"), name


def test_dragging_the_curve_changes_the_load_and_the_result(visit: Visit) -> None:
    before, after = shown(visit, "opened"), shown(visit, "dragged")
    assert after["values"]["load"].startswith("- type: Steps\n  steps:\n  - {at: 0s, rate: 12}\n")
    assert {**after["values"], "load": ""} == {**before["values"], "load": ""}
    assert after["status"] != before["status"]
    assert after["lines"] != before["lines"]
    assert after["problems"] == []


def test_the_zoom_and_the_open_tables_stay_when_the_result_changes(visit: Visit) -> None:
    found = shown(visit, "dragged")
    assert found["range"] == "01-01 00:30:00 to 01-01 01:30:00 UTC"
    assert found["opened"] == 1


def test_the_curve_can_be_undone(visit: Visit) -> None:
    before, after = shown(visit, "opened"), shown(visit, "undone")
    assert (after["values"], after["status"]) == (before["values"], before["status"])


def test_the_curve_can_be_changed_with_the_keyboard(visit: Visit) -> None:
    found = shown(visit, "pressed")
    time, rate = re.findall(r"\{at: (\w+), rate: (\S+)\}", found["values"]["load"])[1]
    assert time == "2m"
    assert float(rate) > 12
    assert found["slider"] == f"{rate} load units per second from 2m to 4m"


def test_an_invalid_hpa_shows_the_message_of_the_validator_at_its_line(
    visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, files = shown(visit, "invalid"), next(iter(visit.files.values()))
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(files["scenario.yaml"], encoding="utf-8")
    Path("hpa.yaml").write_text(found["values"]["hpa"], encoding="utf-8")
    printed = CliRunner().invoke(app, ["simulate", "scenario.yaml", "--no-report"]).output
    [(part, problem)] = found["problems"]
    line, text = re.findall(r"Line (\d+): (.*)", problem)[0]
    assert part == "hpa-problems"
    assert f"hpa.yaml:{line}: {text}" in " ".join(printed.split())
    assert found["wrong"] == [line]
    assert (found["status"], found["invalid"], found["old"]) == ("1 problem", ["hpa"], True)


def test_a_problem_selects_its_line(visit: Visit) -> None:
    assert shown(visit, "selected") == "  maxReplicas: 1"


def test_a_problem_of_the_load_is_shown_at_its_line(visit: Visit) -> None:
    found = shown(visit, "invalid load")
    assert [part for part, _ in found["problems"]] == ["load-problems"]
    assert found["problems"][0][1].startswith("Line 2: load[1].peak: ")
    assert (found["wrong"], found["invalid"]) == (["2"], ["load"])


def test_a_correction_removes_the_problem(visit: Visit) -> None:
    found = shown(visit, "corrected")
    assert (found["problems"], found["wrong"], found["invalid"], found["old"]) == ([], [], [], False)


def test_a_link_has_the_whole_input(visit: Visit) -> None:
    before, after = shown(visit, "corrected"), shown(visit, "shared")
    assert before["values"] != shown(visit, "opened")["values"]
    assert (after["values"], after["status"]) == (before["values"], before["status"])
    assert visit.link.startswith("#1.")
    assert len(visit.link) < 1500


def test_a_page_that_is_opened_with_a_link_has_its_input(visit: Visit) -> None:
    assert shown(visit, "given")["values"] == GIVEN


def test_a_link_that_cannot_be_read_changes_nothing(visit: Visit) -> None:
    found = shown(visit, "broken link")
    assert found["status"].startswith("The link cannot be read: ")
    assert found["problems"] == []


def test_nothing_scrolls_sideways_on_a_phone(visit: Visit) -> None:
    found = shown(visit, "shared")
    assert 370 <= found["width"] <= 390
    assert found["scrolled"] == found["width"]
    assert found["outside"] == []


@pytest.mark.parametrize(("step", "is_dark"), [("opened", False), ("shared", True)], ids=["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(visit: Visit, step: str, *, is_dark: bool) -> None:
    found = shown(visit, step)
    assert (luminance(found["paper"]) < 0.1) is is_dark
    assert len(found["colours"]) > 50
    faint = [text for colour, text in found["colours"] if contrast(colour, found["paper"]) < SUFFICIENT_CONTRAST]
    assert faint == []


def test_every_control_has_a_name(visit: Visit) -> None:
    controls = [node for node in visit.nodes if node[0] in {"button", "combobox", "image", "slider", "textbox"}]
    assert [node for node in controls if not node[1]] == []
    assert {role for role, _ in controls} == {"button", "combobox", "image", "slider", "textbox"}


def test_the_state_is_announced(visit: Visit) -> None:
    """Every run changes the text of a live region."""
    assert {"status", "heading", "main"} <= {role for role, _ in visit.nodes}


def test_the_browser_has_nothing_to_complain_about(visit: Visit) -> None:
    assert visit.complaints == []


def test_everything_comes_from_the_folder_of_the_page(visit: Visit) -> None:
    assert len(visit.requests) > 20
    assert [each for each in visit.requests if not each.startswith((visit.origin, "data:,"))] == []


def test_the_parts_become_the_files_of_the_command(visit: Visit) -> None:
    load = "load:\n  - d\n\n  - e\n"
    assert visit.parts["files"] == {"hpa.yaml": "c\n", "scenario.yaml": f"hpa: hpa.yaml\na: 1\nb: 2\n{load}"}


def test_a_line_of_a_file_is_one_of_a_part(visit: Visit) -> None:
    assert visit.parts["places"] == [
        ["hpa", 3],
        ["scenario", None],
        ["scenario", 1],
        ["scenario", 2],
        ["load", 1],
        ["load", 1],
        ["load", 3],
    ]


def test_durations_are_short(visit: Visit) -> None:
    assert visit.parts["durations"] == ["0s", "59s", "1m", "1h1m", "7200.5s"]


def test_a_curve_becomes_steps_that_change(visit: Visit) -> None:
    steps = "  steps:\n  - {at: 0s, rate: 1}\n  - {at: 1m, rate: 2}\n"
    assert visit.parts["curve"] == f"- type: Steps\n{steps}"
    assert visit.parts["ending"] == f"- type: Steps\n  duration: 1m30s\n{steps}"


def test_a_fragment_has_every_character(visit: Visit) -> None:
    assert visit.parts["shared"] == {"scenario": "a: 1\nb: 2", "hpa": "ü€😀", "load": "- d\n\n- e\n"}


def test_a_fragment_that_is_not_one_is_refused(visit: Visit) -> None:
    assert visit.parts["refused"] == [
        "its version is not known",
        "it holds more than 500000 bytes",
        "it has no load",
    ]


def test_of_the_views_that_wait_only_the_newest_is_simulated(visit: Visit) -> None:
    """The first two are replaced by the fourth; the text that is asked for in between is not replaced."""
    assert visit.queue["before"] == 0
    assert visit.queue["sent"] == [3, 4, 5, 6, 7]
    assert visit.queue["kept"] == {"problems": []}


def test_a_view_is_known_to_be_superseded(visit: Visit) -> None:
    answered = [each for each in visit.queue["found"] if each[0] == "view"]
    assert [superseded for _, _, superseded in answered] == [False, True]


def test_progress_and_failures_are_passed_on(visit: Visit) -> None:
    assert ["running", 0.5] in visit.queue["found"]
    assert ["failed", "why"] in visit.queue["found"]


def test_after_a_stop_another_worker_waits_for_the_next_view(visit: Visit) -> None:
    assert visit.queue["stopped"]
    assert visit.queue["afterwards"] == []
    assert visit.queue["found"][-1] == ["ready"]
