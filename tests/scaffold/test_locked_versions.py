"""Lock files from installed packages."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path

import pytest

from ocf.scaffold.locked_versions import TESTED, closure, lock_file, missing

LOCK = Path(__file__).parents[2] / "requirements" / "check.lock"


def test_everything_that_is_needed_is_locked() -> None:
    locked = closure(["ocf"])

    assert {"ocf", "kubernetes", "pydantic", "pydantic-core", "typing-extensions", "aiohttp", "yarl"} <= locked.keys()
    assert locked["pydantic"] == version("pydantic")
    assert "pytest" not in locked


def test_extras_are_followed() -> None:
    assert {"pytest", "pytest-asyncio", "cryptography"} <= closure(["ocf[testing]"]).keys()
    assert "kopf" in closure(["ocf[kopf]"])
    assert "kopf" not in closure(["ocf[testing]"])


def test_a_tool_that_is_not_installed_has_the_tested_version() -> None:
    assert closure(["Not_A.Package"], {"not-a-package": "1.0"}) == {"not-a-package": "1.0"}
    assert closure(["not-a-package"], {}) == {}


def test_what_an_extra_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_kopf(name: str) -> Distribution:
        if name == "kopf":
            raise PackageNotFoundError(name)
        return distribution(name)

    assert missing(["ocf[kopf,admission]"]) == []
    monkeypatch.setattr("ocf.scaffold.locked_versions.distribution", without_kopf)
    assert missing(["ocf[kopf,admission]"]) == ["kopf"]
    assert missing(["ocf[admission]"]) == []
    assert missing(["no-such-package"]) == ["no-such-package"]


@pytest.mark.parametrize("name", TESTED)
def test_the_tested_version_is_the_one_that_is_locked_here(name: str) -> None:
    found = re.search(rf"^{name}==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)

    assert found is not None
    assert TESTED[name] == found[1]


def test_a_lock_file_is_a_requirements_file() -> None:
    assert lock_file({"a": "1", "b": "2"}, ["note"]) == "# note\na==1\nb==2\n"
