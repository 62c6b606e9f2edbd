"""A tracer whose spans are kept in memory."""

from collections.abc import Iterator

import pytest

from tests.traces import Traces, recording


@pytest.fixture
def traces() -> Iterator[Traces]:
    with recording() as found:
        yield found
