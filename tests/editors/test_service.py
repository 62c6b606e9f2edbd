"""ServiceSpecEditor: ports by name or by number, the selector, and plain fields."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1ClientIPConfig, V1ServicePort, V1ServiceSpec, V1SessionAffinityConfig
from pydantic import ValidationError

from ocf.editors import ServiceSpecEditor
from ocf.errors import ConfigError
from ocf.objects import write_model

Setter = Callable[[ServiceSpecEditor, object], None]


@pytest.fixture
def editor() -> ServiceSpecEditor:
    return ServiceSpecEditor(V1ServiceSpec())


def port(number: int, name: str | None = None, protocol: str | None = None) -> V1ServicePort:
    return V1ServicePort(port=number, name=name, protocol=protocol)


SETTERS = pytest.mark.parametrize(
    ("setter", "field", "value"),
    [
        pytest.param(ServiceSpecEditor.set_type, "type", "NodePort", id="type"),
        pytest.param(ServiceSpecEditor.set_selector, "selector", {"app": "web"}, id="selector"),
        pytest.param(ServiceSpecEditor.set_selector, "selector", {}, id="an empty selector is a value"),
        pytest.param(ServiceSpecEditor.set_session_affinity, "sessionAffinity", "None", id="the text None is a value"),
        pytest.param(
            ServiceSpecEditor.set_publish_not_ready_addresses, "publishNotReadyAddresses", False, id="false is a value"
        ),
        pytest.param(ServiceSpecEditor.set_external_traffic_policy, "externalTrafficPolicy", "Local", id="external"),
        pytest.param(ServiceSpecEditor.set_internal_traffic_policy, "internalTrafficPolicy", "Local", id="internal"),
        pytest.param(
            ServiceSpecEditor.set_load_balancer_source_ranges, "loadBalancerSourceRanges", ["10.0.0.0/8"], id="ranges"
        ),
        pytest.param(ServiceSpecEditor.set_external_name, "externalName", "example.com", id="name"),
    ],
)


@SETTERS
def test_sets_its_field_and_none_unsets_it(
    editor: ServiceSpecEditor, setter: Setter, field: str, value: object
) -> None:
    setter(editor, value)
    assert write_model(editor.raw) == {field: value}
    setter(editor, None)
    assert write_model(editor.raw) == {}


@SETTERS
def test_the_model_rejects_another_type(editor: ServiceSpecEditor, setter: Setter, field: str, value: object) -> None:
    del field, value
    with pytest.raises(ValidationError):
        setter(editor, 1.5)
    assert write_model(editor.raw) == {}


def test_the_affinity_configuration_is_a_copy(editor: ServiceSpecEditor) -> None:
    config = V1SessionAffinityConfig(client_ip=V1ClientIPConfig(timeout_seconds=60))
    editor.set_session_affinity_config(config)
    config.client_ip = None
    assert write_model(editor.raw) == {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}


# row: what is there, what is ensured, what is then there
PORTS = [
    pytest.param([port(80, "http")], port(8080, "http"), [port(8080, "http")], id="the same name, another number"),
    pytest.param([port(80, "http")], port(80, "web"), [port(80, "http"), port(80, "web")], id="another name"),
    pytest.param([port(80)], port(80, protocol="TCP"), [port(80, protocol="TCP")], id="no protocol is TCP"),
    pytest.param([port(53)], port(53, protocol="UDP"), [port(53), port(53, protocol="UDP")], id="another protocol"),
    pytest.param([port(80, "http")], port(80), [port(80)], id="unnamed takes the place of a named one of its number"),
    pytest.param([port(80)], port(80, "http"), [port(80), port(80, "http")], id="named does not match unnamed"),
    pytest.param(
        [port(1, "a"), port(2, "b"), port(3, "a")],
        port(4, "a"),
        [port(4, "a"), port(2, "b"), port(3, "a")],
        id="the first one, at its place",
    ),
]


@pytest.mark.parametrize(("present", "ensured", "then"), PORTS)
def test_ensure_port(present: list[V1ServicePort], ensured: V1ServicePort, then: list[V1ServicePort]) -> None:
    editor = ServiceSpecEditor(V1ServiceSpec(ports=present))
    for _ in range(2):
        editor.ensure_port(ensured)
        assert editor.raw.ports == then
    assert all(stored is not ensured for stored in editor.raw.ports or ())


def test_remove_port_goes_by_name_and_an_empty_name_means_without(editor: ServiceSpecEditor) -> None:
    for one in (port(80, "http"), port(81), port(82, "metrics")):
        editor.ensure_port(one)
    editor.remove_port("metrics")
    editor.remove_port("none of them")
    assert editor.raw.ports == [port(80, "http"), port(81)]
    editor.remove_port("")
    editor.remove_port("http")
    assert write_model(editor.raw) == {}


def test_a_value_that_is_not_a_port_is_rejected(editor: ServiceSpecEditor) -> None:
    with pytest.raises(ConfigError, match=r"ports: must be a kubernetes\.client\.V1ServicePort"):
        editor.ensure_port({"port": 80})  # type: ignore[arg-type]  # the point of the test


def test_the_selector_entry_by_entry(editor: ServiceSpecEditor) -> None:
    given = {"app": "web"}
    editor.set_selector(given)
    editor.ensure_selector("tier", "front")
    editor.ensure_selector("app", "shop")
    assert editor.raw.selector == {"app": "shop", "tier": "front"}
    assert given == {"app": "web"}
    editor.remove_selector("app")
    editor.remove_selector("tier")
    assert write_model(editor.raw) == {}
