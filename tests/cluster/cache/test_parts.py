"""Parts of the cache: version comparison, list filters, reduction, and delays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.cache import CacheTiming
from ocf.cluster.cache.keys import WatchScope
from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.cache.transform import reduction
from ocf.errors import ConfigError
from ocf.objects import Manifest, copy_json
from ocf.objects.resource_versions import is_newer, is_older


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [
        pytest.param("9", "10", True, id="as numbers, not as texts"),
        pytest.param("10", "9", False, id="newer"),
        pytest.param("10", "10", False, id="the same"),
        pytest.param("a", "b", False, id="opaque"),
        pytest.param("1", "b", False, id="one of them opaque"),
        pytest.param("", "1", False, id="none"),
        pytest.param("-1", "1", False, id="empty"),
        pytest.param("\u0661", "2", False, id="digits of another script"),
        pytest.param("1", "9" * 5_000, False, id="too long"),
    ],
)
def test_which_version_is_older(one: str, other: str, *, older: bool) -> None:
    assert is_older(one, other) is older
    assert is_newer(other, one) is older


def test_a_scope_covers_one_namespace_or_all() -> None:
    assert WatchScope("v1", "Pod").covers("shop")
    assert WatchScope("v1", "Pod", "shop").covers("shop")
    assert not WatchScope("v1", "Pod", "shop").covers("other")
    assert str(WatchScope("v1", "Pod", "shop")) == "v1/Pod in shop"


@pytest.mark.parametrize(
    ("labels", "fields", "expected"),
    [
        pytest.param("", "", True, id="everything"),
        pytest.param("app=web", "", True, id="a label"),
        pytest.param("app!=web", "", False, id="not a label"),
        pytest.param("", "metadata.name=web", True, id="the name"),
        pytest.param("", "metadata.name!=web", False, id="not the name"),
        pytest.param("", "metadata.namespace==shop,metadata.name=x", False, id="all terms must match"),
        pytest.param("", "metadata.namespace=", False, id="an empty namespace"),
        pytest.param("", "spec.nodeName=a", None, id="another field"),
        pytest.param("a in (", "", None, id="invalid label selector"),
        pytest.param("", "metadata.name", None, id="invalid field selector"),
    ],
)
def test_which_objects_are_selected(labels: str, fields: str, *, expected: bool | None) -> None:
    selection = ListFilter.parse(labels, fields)

    assert (selection and selection.matches(("shop", "web"), {"app": "web"})) == expected


FIELDS: Manifest = {"f:spec": {"f:replicas": {}, "f:paused": {}}, "f:status": {"f:replicas": {}}}


class TestReduction:
    def object(self, *managers: str) -> Manifest:
        entries = [{"manager": name, "fieldsV1": copy_json(FIELDS)} for name in managers]
        return {"metadata": {"name": "web", "managedFields": entries}, "spec": {"replicas": 1}}

    def kept(self, manifest: Manifest) -> Any:
        return {entry["manager"]: entry["fieldsV1"] for entry in manifest["metadata"].get("managedFields", [])}

    def test_only_the_entries_of_the_chosen_managers_are_kept(self) -> None:
        reduced = reduction(lambda name: name == "us")(self.object("us", "them"))

        assert self.kept(reduced) == {"us": FIELDS}
        assert reduced["spec"] == {"replicas": 1}

    def test_of_other_managers_the_ignored_fields_are_kept(self) -> None:
        reduced = reduction(lambda _: False, ["spec.replicas", "spec.unset", "status"])(self.object("them"))

        assert self.kept(reduced) == {"them": {"f:spec": {"f:replicas": {}}, "f:status": {"f:replicas": {}}}}

    def test_without_kept_entries_managed_fields_is_removed(self) -> None:
        assert reduction(lambda _: False)(self.object("them"))["metadata"] == {"name": "web"}
        bare: Manifest = {"metadata": {"name": "web"}}
        assert reduction(lambda _: False)(bare) == bare

    def test_the_object_is_not_changed(self) -> None:
        manifest = self.object("us", "them")
        before = copy_json(manifest)
        reduction(lambda _: False, ["spec.replicas"])(manifest)

        assert manifest == before

    def test_an_invalid_path_is_rejected(self) -> None:
        with pytest.raises(ConfigError, match="not a field path"):
            reduction(lambda _: True, ["spec.metrics[0]"])


class TestPace:
    @given(failures=st.integers(1, 10_000), chance=st.floats(0, 1, exclude_max=True))
    def test_delays_stay_in_range(self, failures: int, chance: float) -> None:
        """At most a quarter of a delay is random, and the limit is never exceeded."""
        full = CacheTiming(random=lambda: 0.0).delay(failures)
        delay = CacheTiming(random=lambda: chance).delay(failures)

        assert 0.75 * full <= delay <= full <= 45

    def test_retry_after_is_a_minimum(self) -> None:
        timing = CacheTiming(random=lambda: 0.0)

        assert (timing.delay(1, 120.0), timing.delay(8, 1.0)) == (120, 45)

    @pytest.mark.parametrize("name", ["first_delay", "longest_delay", "idle_timeout", "relist_every", "page_size"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_values_that_are_not_positive_are_rejected(self, name: str, value: int) -> None:
        settings: dict[str, Any] = {name: value}
        with pytest.raises(ConfigError, match=f"{name} must be more than 0, not {value}"):
            CacheTiming(**settings)

    def test_a_first_delay_beyond_the_longest_is_rejected(self) -> None:
        with pytest.raises(ConfigError, match="must not exceed"):
            CacheTiming(first_delay=60)
