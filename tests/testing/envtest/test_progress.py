"""Progress of a build: bars on a terminal, readable lines elsewhere."""

from io import StringIO

import pytest
from rich.console import Console

from ocf.testing.envtest.progress import shown_on


def test_without_a_terminal_a_step_prints_a_line_at_its_start_and_end() -> None:
    out = StringIO()
    progress = shown_on(Console(file=out))
    with progress.step("etcd: building", 3) as see:
        see("fmt")
    begun, done = out.getvalue().splitlines()
    assert begun == "etcd: building, 3 packages ..."
    assert done.startswith("etcd: building: done in ")


def test_on_a_terminal_packages_are_counted_and_downloads_are_not() -> None:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)

    def build() -> None:
        with shown_on(console).step("etcd: building", 3) as see:
            see("go: downloading example.com/a v1")
            see("fmt")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build()
    assert "1/3" in out.getvalue()
    assert "2/3" not in out.getvalue()


def test_on_a_terminal_a_step_is_complete_in_the_end() -> None:
    """Go does not print packages that it had compiled before."""
    out = StringIO()
    with shown_on(Console(file=out, force_terminal=True, width=120, color_system=None)).step("etcd: building", 3):
        pass
    assert "3/3" in out.getvalue()


def test_a_failed_step_is_not_reported_as_done() -> None:
    out = StringIO()
    with pytest.raises(KeyboardInterrupt), shown_on(Console(file=out)).step("etcd: building"):
        raise KeyboardInterrupt
    assert out.getvalue() == "etcd: building ...\n"
