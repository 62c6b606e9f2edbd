"""Container selectors: predicates of position and container."""

import pytest
from kubernetes.client import V1Container

from ocf.editors import (
    all_containers,
    container_at_index,
    container_named,
    container_not_named,
    containers_named,
    containers_not_named,
)
from ocf.editors.container_selectors import ContainerSelector
from ocf.errors import ConfigError

NAMES = ["web", "proxy", "web", ""]


def selected(selector: ContainerSelector) -> list[int]:
    return [index for index, name in enumerate(NAMES) if selector(index, V1Container(name=name))]


@pytest.mark.parametrize(
    ("selector", "indices"),
    [
        pytest.param(all_containers, [0, 1, 2, 3], id="all"),
        pytest.param(container_named("web"), [0, 2], id="one name, every container of it"),
        pytest.param(container_named("WEB"), [], id="names are compared exactly"),
        pytest.param(container_named(""), [3], id="the empty name is a name"),
        pytest.param(containers_named("proxy", "web"), [0, 1, 2], id="several names"),
        pytest.param(containers_named("proxy", "db"), [1], id="a name that is not there"),
        pytest.param(containers_named(), [], id="no names match nothing"),
        pytest.param(container_not_named("web"), [1, 3], id="all but one name"),
        pytest.param(containers_not_named("web", ""), [1], id="all but several names"),
        pytest.param(containers_not_named(), [0, 1, 2, 3], id="all but nothing"),
        pytest.param(container_at_index(1), [1], id="a position"),
        pytest.param(container_at_index(4), [], id="a position that is not there"),
        pytest.param(container_at_index(-1), [], id="positions are not counted from the end"),
    ],
)
def test_selects(selector: ContainerSelector, indices: list[int]) -> None:
    assert indices == selected(selector)


def test_any_predicate_is_a_selector() -> None:
    assert selected(lambda index, container: index > 0 and container.name == "web") == [2]


@pytest.mark.parametrize("make", [container_named, containers_named, container_not_named, containers_not_named])
@pytest.mark.parametrize("name", [None, ["web"], ("web", "proxy"), 1], ids=repr)
def test_a_name_that_is_not_a_string_is_rejected(make: type, name: object) -> None:
    """A list of names would silently match nothing."""
    with pytest.raises(ConfigError, match="name of a container: must be a text"):
        make(name)
