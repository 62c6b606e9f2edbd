"""The wheel of an installed package, made from its files.

A lock file with the version of a package that no index has cannot be installed:
https://github.com/pypa/pip/issues/4005.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from ocf.scaffold.installed_wheel import source_folder, write_wheel

WHEEL = "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
RECORD = """\
tin_shop/__init__.py,,
tin_shop/__pycache__/__init__.cpython-311.pyc,,
tin_shop/data.txt,,
../../../bin/tin,,
tin_shop-1.2.dist-info/METADATA,,
tin_shop-1.2.dist-info/WHEEL,,
tin_shop-1.2.dist-info/INSTALLER,,
tin_shop-1.2.dist-info/direct_url.json,,
tin_shop-1.2.dist-info/RECORD,,
"""


def installed(folder: Path, origin: object) -> Distribution:
    """Return a package as pip leaves it in a folder; the origin is None if it came from an index."""
    info = folder / "tin_shop-1.2.dist-info"
    files = {
        folder / "tin_shop" / "__init__.py": "NAME = 'tin'\n",
        folder / "tin_shop" / "data.txt": "ü\n",
        info / "METADATA": "Metadata-Version: 2.1\nName: tin-shop\nVersion: 1.2\n",
        info / "WHEEL": WHEEL,
        info / "INSTALLER": "pip\n",
        info / "RECORD": RECORD,
    }
    if origin is not None:
        files[info / "direct_url.json"] = json.dumps(origin)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return PathDistribution(info)


def test_a_package_of_an_index_has_none(tmp_path: Path) -> None:
    assert write_wheel(installed(tmp_path / "site", None), tmp_path / "wheels") is None
    assert not (tmp_path / "wheels").exists()


def test_an_editable_package_has_its_folder_instead(tmp_path: Path) -> None:
    package = installed(tmp_path / "site", {"url": "file:///my%20code/tin", "dir_info": {"editable": True}})
    assert write_wheel(package, tmp_path / "wheels") is None
    assert source_folder(package) == Path("/my code/tin")


@pytest.mark.parametrize(
    "origin",
    [
        pytest.param({"url": "file:///tin", "dir_info": {}}, id="folder"),
        pytest.param({"url": "https://git.example.com/tin", "vcs_info": {"vcs": "git", "commit_id": "a"}}, id="git"),
        pytest.param({"url": "file:///tin.whl", "archive_info": {}}, id="wheel"),
    ],
)
def test_the_wheel_has_the_files_of_the_package(tmp_path: Path, origin: object) -> None:
    package = installed(tmp_path / "site", origin)
    assert source_folder(package) is None
    wheel = write_wheel(package, tmp_path / "wheels")
    assert wheel is not None
    assert wheel == tmp_path / "wheels" / "tin_shop-1.2-py3-none-any.whl"
    with ZipFile(wheel) as archive:
        assert archive.namelist() == [
            "tin_shop/__init__.py",
            "tin_shop/data.txt",
            "tin_shop-1.2.dist-info/METADATA",
            "tin_shop-1.2.dist-info/WHEEL",
            "tin_shop-1.2.dist-info/RECORD",
        ]
        assert archive.read("tin_shop/data.txt").decode() == "ü\n"
    first = wheel.read_bytes()
    write_wheel(package, tmp_path / "wheels")
    assert wheel.read_bytes() == first


def test_pip_installs_it_without_an_index(tmp_path: Path) -> None:
    """An installer compares each file with its digest, and rejects a wheel whose files it does not know."""
    write_wheel(installed(tmp_path / "site", {"url": "file:///tin", "dir_info": {}}), tmp_path / "wheels")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    there = tmp_path / "there"
    command += [f"--find-links={tmp_path}/wheels", f"--target={there}", "tin-shop==1.2"]
    subprocess.run(command, check=True)  # noqa: S603 (pip, with arguments of the test)
    assert (there / "tin_shop" / "data.txt").read_text(encoding="utf-8") == "ü\n"
