"""Usage of pods: the fast decoding gives what the general one gives, for every entry."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Sample, Unavailable, read_resource
from ocf.controllers.metrics_client import usage
from ocf.controllers.metrics_client.decoding import decode_pod_metrics
from ocf.controllers.metrics_client.usage import PodUsage, usage_samples
from ocf.errors import ManifestError, QuantityError
from ocf.objects import Manifest

PLAIN: Final[Manifest] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "creationTimestamp": "2026-01-31T12:00:09Z",
        "labels": {"app": "web"},
    },
    "timestamp": "2026-01-31T12:00:00Z",
    "window": "15.5s",
    "containers": [
        {"name": "app", "usage": {"cpu": "1234567n", "memory": "123456Ki"}},
        {"name": "proxy", "usage": {"cpu": "2m", "memory": "0"}},
    ],
}
ODD: Final = st.sampled_from([None, "", 0, 1.5, True, [], {}, [None], {"": None}])
AMOUNTS: Final = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,22}(\.[0-9]{1,4})?(n|u|m|k|Ki|M|Mi|G|Gi|E|e3|x)?", fullmatch=True), ODD
)
TIMES: Final = st.one_of(
    st.sampled_from(
        [
            "2026-01-31T12:00:00.999999999Z",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31t12:00:00z",
            "0001-01-01T00:00:00+02:00",
            "2026-01-31T12:00:00,5Z",
            "2026-01-31",
        ]
    ),
    ODD,
)
CONTAINERS: Final = st.one_of(
    st.lists(
        st.one_of(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["app", "proxy", None, 1])},
                optional={
                    "usage": st.one_of(st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS), ODD),
                    "other": ODD,
                },
            ),
            ODD,
        ),
        max_size=3,
    ),
    ODD,
)
METADATA: Final = st.one_of(
    st.fixed_dictionaries(
        {"name": st.one_of(st.just("web-0"), ODD)},
        optional={"labels": st.one_of(st.just({"app": "web"}), st.just({"app": None}), ODD), "uid": ODD}
        | {"creationTimestamp": TIMES, "namespace": ODD},
    ),
    ODD,
)
FIELDS: Final = {
    "metadata": METADATA,
    "timestamp": TIMES,
    "window": st.one_of(st.sampled_from(["1m", "15.5s", "-1s", "1", "1e400h"]), ODD),
    "containers": CONTAINERS,
    "kind": st.one_of(st.sampled_from(["PodMetrics", "Pod"]), ODD),
    "apiVersion": st.one_of(st.sampled_from(["metrics.k8s.io/v1beta1", "v1"]), ODD),
    "status": ODD,
}


def result(read: Any) -> Any:
    try:
        return read()
    except (ManifestError, QuantityError, ValueError, OverflowError) as error:
        return type(error), str(error)


@given(
    st.fixed_dictionaries({}, optional=FIELDS).map(lambda changes: {**PLAIN, **changes}) | ODD,
    st.sampled_from(["cpu", "memory", "gpu"]),
    st.sampled_from(["", "app", "none"]),
)
def test_an_entry_is_decoded_as_by_the_general_decoders(entry: Any, resource: str, container: str) -> None:
    found = result(lambda: usage_samples([PodUsage(entry)], resource, container))
    assert found == result(lambda: read_resource(decode_pod_metrics([entry]), resource, container))


@pytest.mark.parametrize(
    ("resource", "container", "value"),
    [
        pytest.param("cpu", "", 4, id="the sum, each container rounded up"),
        pytest.param("cpu", "proxy", 2, id="one container"),
        pytest.param("memory", "", 126_418_944_000, id="bytes"),
    ],
)
def test_the_plain_form_takes_the_fast_way(
    monkeypatch: pytest.MonkeyPatch, resource: str, container: str, value: int
) -> None:
    def never(_: Any) -> Any:
        raise AssertionError("the general decoders were used")

    monkeypatch.setattr(usage, "decode_pod_metrics", never)
    found = usage_samples([PodUsage(PLAIN)], resource, container)
    assert isinstance(found, dict)
    assert {name: sample.value for name, sample in found.items()} == {"web-0": value}


def test_an_entry_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = PodUsage(PLAIN)
    first = entry.sample("cpu")
    monkeypatch.setattr(usage, "_plain", None)
    assert entry.sample("cpu") == first
    assert isinstance(first[1], Sample)


def test_no_entries_are_a_failure() -> None:
    assert usage_samples([], "cpu") == Unavailable("no metrics returned from resource metrics API")
