"""Tests are shuffled, and long ones begin first."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def test_long_tests_begin_first_in_any_order(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeini("[pytest]\nmarkers = long")
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(9))
        def test_short(number): ...

        @pytest.mark.long
        def test_long(): ...

        class TestOthers:
            @pytest.mark.long
            @pytest.mark.parametrize("number", range(2))
            def test_long_in_class(self, number): ...
    """)
    monkeypatch.setenv("OCF_REQUIRE", "long")
    for seed in ("1", "2"):
        result = pytester.runpytest_inprocess("-p", "no:asyncio", f"--randomly-seed={seed}", "--collect-only", "-q")
        names = [line.rpartition("::")[2] for line in result.outlines if "::" in line]
        assert {name.partition("[")[0] for name in names[:3]} == {"test_long", "test_long_in_class"}
        assert {name.partition("[")[0] for name in names[3:]} == {"test_short"}
        assert len(names) == 12
