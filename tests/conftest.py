"""What holds for every test: the fixtures that users get, no deadline, and few collections of garbage.

A machine may be busy with other work, so no test fails because it is slow: examples have no deadline, and generating
them may take any time. The examples of a property depend on its code alone, so that no run fails that changed nothing;
`make properties` looks for failures with others, and more of them.

A test process holds every test module and thousands of test items, none of which is ever garbage. Walking through them
again and again was a quarter of the CPU time of a run. So they are collected without the collector, then set aside, and
the collector runs at a pace for short-lived objects. A test that changes it restores it. What a test leaves behind is
still found, at the latest when the session ends.
"""

import asyncio
import gc
import json
import signal
from collections.abc import Generator, Iterator, Sequence
from itertools import takewhile
from typing import Final

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from ocf.testing.envtest import ControlPlane
from tests.long_tests import LongTests, function, listed
from tests.requirements import LEFT_OUT, LONG, Case, Sampled, required, sample, summary

pytest_plugins = ["ocf.testing.plugin", "tests.browser"]

# New objects before a collection of the young ones, and how many of those before one of the older, and of all.
_PACE: Final = (50_000, 20, 100)

settings.register_profile(
    "ocf",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    max_examples=40,
)
# That of `make properties`, which runs whole matrices as well.
_THOROUGH: Final = "random"
settings.register_profile(_THOROUGH, settings.get_profile("ocf"), derandomize=False, max_examples=500, print_blob=True)
settings.load_profile("ocf")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option that lists the long tests."""
    parser.addoption("--list-long", type=float, metavar="SECONDS", help="list the tests that take longer as long ones")


def pytest_configure(config: pytest.Config) -> None:
    """Let programs that tests start be interrupted, also in a background job, where a shell has SIGINT ignored."""
    if seconds := config.getoption("--list-long"):
        config.pluginmanager.register(LongTests(seconds))
    # hypothesis asks the garbage collector who refers to its source of random numbers; what is frozen is not an answer.
    config.addinivalue_line("filterwarnings", "ignore:It looks like `register_random` was passed an object")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    """Set no event loop, so that none is created by asking for the current one.

    Before its version 1.4, pytest-asyncio asks for the current event loop ahead of the first asynchronous test. asyncio
    then creates one, which no code closes once `asyncio.run` has replaced it; the collector warns of it in whichever
    test it runs next.
    """
    asyncio.set_event_loop(None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, and keep it away from them afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_PACE)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Fail a test that leaves the collector with another pace: all tests after it would take many times as long."""
    try:
        return (yield)
    finally:
        # Whether objects are still frozen is not looked at, since Python counts all of them to answer.
        found = gc.isenabled(), gc.get_threshold()
        if found != (True, _PACE):
            gc.set_threshold(*_PACE)
            gc.enable()
            pytest.fail(
                f"the test leaves the garbage collector with (enabled, threshold) = {found}, not {(True, _PACE)}:"
                f" restore it with gc.enable or gc.set_threshold"
            )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave long tests out unless they are required, and run them first.

    One that begins last would be waited for while the other processes have nothing to do.
    """
    known = listed()
    for item in items:
        if function(item.nodeid) in known:
            item.add_marker(LONG)
    items.sort(key=lambda item: item.get_closest_marker(LONG) is None)
    if not required(LONG):
        for item in takewhile(lambda item: item.get_closest_marker(LONG), items):
            item.add_marker(pytest.mark.skip(f"{LONG}: takes many times as long as others"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect no doctests from test modules: only those of the package are wanted, and the search takes seconds."""
    collectors = yield
    return [each for each in collectors if not isinstance(each, DoctestModule)]


@pytest.fixture
def sampled(request: pytest.FixtureRequest) -> Sampled:
    """Return the function that takes the sample of a matrix; a test with it has the marker `matrix`."""
    assert request.node.get_closest_marker("matrix"), "make properties selects matrices by their marker"

    def chosen(cases: Sequence[Case], /) -> list[Case]:
        if request.config.getoption("--hypothesis-profile") == _THOROUGH:
            return list(cases)
        found = sample(cases)
        request.node.user_properties.append((LEFT_OUT, len(cases) - len(found)))
        return found

    return chosen


@pytest.fixture(scope="session")
def envtest_plane(envtest_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Give the control plane of the run; fail the run if a test leaves an APIService on it.

    Without a server behind the APIService, discovery fails in all tests that come later.
    """
    yield envtest_plane
    listed = json.loads(envtest_plane.kubectl("get", "apiservices", "--output=json"))["items"]
    assert [one["metadata"] for one in listed if one["spec"].get("service")] == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was left out, and how to run it."""
    stats = terminalreporter.stats
    for line in summary(stats.get("skipped", []), stats.get("passed", [])):
        terminalreporter.write_line(line)
