"""A build can be followed on a terminal, and leaves readable lines elsewhere."""

from io import StringIO

import pytest
from rich.console import Console

from ocf.testing.envtest.progress import shown_on


def test_elsewhere_there_is_a_line_when_a_step_begins_and_one_when_it_ends() -> None:
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
    """What Go had compiled before is not counted while it builds."""
    out = StringIO()
    with shown_on(Console(file=out, force_terminal=True, width=120, color_system=None)).step("etcd: building", 3):
        pass
    assert "3/3" in out.getvalue()


def test_a_step_that_fails_does_not_claim_to_be_done() -> None:
    out = StringIO()
    with pytest.raises(KeyboardInterrupt), shown_on(Console(file=out)).step("etcd: building"):
        raise KeyboardInterrupt
    assert out.getvalue() == "etcd: building ...\n"
