"""A wrapper of a cluster overrides something."""

import pytest

from ocf.cluster import InterceptingCluster
from ocf.testing import FaultyCluster


def test_a_wrapper_that_overrides_nothing_is_refused() -> None:
    """A misspelled `intercept` let all requests through, and the test passed."""
    with pytest.raises(
        TypeError, match=r"^Late overrides no method of InterceptingCluster, so it would change nothing:"
    ):
        type("Late", (InterceptingCluster,), {"around": lambda self, request, send: (self, request, send)})


@pytest.mark.parametrize("method", ["intercept", "get", "watch", "apply_cache", "is_namespaced"])
def test_one_overridden_method_is_enough(method: str) -> None:
    assert issubclass(type("Late", (InterceptingCluster,), {method: None}), InterceptingCluster)


def test_a_wrapper_of_a_wrapper_need_not_override_again() -> None:
    assert issubclass(type("Late", (FaultyCluster,), {"times": 3}), FaultyCluster)
