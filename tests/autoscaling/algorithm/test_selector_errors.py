"""Errors of selectors of metrics: the controller's words are recorded, and here is which selectors have one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm.hpa_spec import selector_error
from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

NAMES = st.one_of(st.sampled_from(["app", "", "-app", "a b", "example.com/app", "/app", "a/b/c", "x" * 64]))
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Near", ""])
EXPRESSIONS = st.fixed_dictionaries(
    {"key": NAMES, "operator": OPERATORS}, optional={"values": st.none() | st.lists(NAMES, max_size=2)}
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": st.dictionaries(NAMES, NAMES), "matchExpressions": st.lists(EXPRESSIONS, max_size=3)}
)


@given(SELECTORS | st.none())
def test_a_selector_has_an_error_exactly_if_it_cannot_be_parsed(selector: Manifest | None) -> None:
    try:
        LabelSelector.of(selector)
    except ManifestError:
        assert selector_error(selector)
    else:
        assert not selector_error(selector)
