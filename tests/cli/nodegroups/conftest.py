"""Fixtures of the tests of `ocf nodegroups`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.nodegroups.trials import TYPES


@pytest.fixture
def trial_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder with the instance types."""
    monkeypatch.chdir(tmp_path)
    Path("types.json").write_text(json.dumps(TYPES), encoding="utf-8")
