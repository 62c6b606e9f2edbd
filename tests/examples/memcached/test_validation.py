"""Rules of the validation that have nothing to do with autoscaling, and the two samples that users copy."""

import pytest

from examples.memcached import samples
from examples.memcached.defaulting import default
from examples.memcached.model import Memcached
from examples.memcached.validation import validate
from ocf.objects import Manifest, load_document, read_live


def problems(**spec: object) -> list[str]:
    return [str(error) for error in validate(read_live({"spec": spec}, Memcached))]


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        pytest.param("96Mi", False, id="just enough"),
        pytest.param("95Mi", True, id="a little less"),
        pytest.param(96 * 1024 * 1024, False, id="a number"),
        pytest.param("100M", True, id="decimal megabytes are smaller"),
        pytest.param("101M", False, id="enough of them"),
    ],
)
def test_memory_needs_room_for_more_than_items(limit: str | int, refused: bool) -> None:
    found = problems(resources={"limits": {"memory": limit}}, memcached={"maxMemoryMB": 64})

    shown = f'spec.resources.limits.memory: Invalid value: "{limit}"'
    assert found == ([f"{shown}: must be at least maxMemoryMB + 32Mi, which is 96Mi"] if refused else [])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"memcached": {"maxMemoryMB": 4096}}, id="no limit"),
        pytest.param({"resources": {"limits": {"cpu": "1"}}, "memcached": {}}, id="a limit of something else"),
        pytest.param({"resources": {"limits": {"memory": "1Mi"}}}, id="no settings"),
    ],
)
def test_memory_without_a_limit_is_valid(spec: Manifest) -> None:
    assert problems(**spec) == []


BUDGET = "spec.highAvailability.podDisruptionBudget"


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        pytest.param({"minAvailable": 2}, [], id="one count"),
        pytest.param({"maxUnavailable": 1}, [], id="the other"),
        pytest.param({"minAvailable": "50%"}, [], id="a share"),
        pytest.param(
            {}, [f"{BUDGET}: Required value: one of minAvailable and maxUnavailable must be given"], id="none"
        ),
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": 1},
            [
                (
                    f'{BUDGET}: Invalid value: {{"enabled":true,"minAvailable":1,"maxUnavailable":1}}: '
                    "minAvailable and maxUnavailable are mutually exclusive"
                )
            ],
            id="both",
        ),
        pytest.param(
            {"minAvailable": 3},
            [f"{BUDGET}.minAvailable: Invalid value: 3: minAvailable (3) must be less than replicas (3)"],
            id="no drain would ever end",
        ),
    ],
)
def test_the_disruption_budget(budget: Manifest, expected: list[str]) -> None:
    said = {"podDisruptionBudget": {"enabled": True, **budget}}

    assert problems(replicas=3, highAvailability=said) == expected
    assert problems(replicas=3, highAvailability={"podDisruptionBudget": {**budget, "enabled": False}}) == []


def test_a_budget_is_not_compared_with_an_unknown_count() -> None:
    assert problems(highAvailability={"podDisruptionBudget": {"enabled": True, "minAvailable": 30}}) == []


@pytest.mark.parametrize(("delay", "period", "refused"), [(10, 30, False), (30, 30, True), (60, 30, True)])
def test_the_delay_has_to_end_before_the_grace_period(delay: int, period: int, refused: bool) -> None:
    shutdown = {"enabled": True, "preStopDelaySeconds": delay, "terminationGracePeriodSeconds": period}
    field = "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds"

    assert problems(highAvailability={"gracefulShutdown": shutdown}) == (
        [f"{field}: Invalid value: {period}: must be greater than preStopDelaySeconds ({delay})"] if refused else []
    )
    assert problems(highAvailability={"gracefulShutdown": {**shutdown, "enabled": False}}) == []


@pytest.mark.parametrize(
    ("security", "path"),
    [
        pytest.param({"sasl": {"enabled": True}}, "spec.security.sasl.credentialsSecretRef.name", id="sasl"),
        pytest.param({"tls": {"enabled": True}}, "spec.security.tls.certificateSecretRef.name", id="tls"),
        pytest.param({"sasl": {"enabled": True, "credentialsSecretRef": {"name": "a"}}}, None, id="sasl, named"),
        pytest.param({"tls": {"enabled": True, "certificateSecretRef": {"name": "a"}}}, None, id="tls, named"),
        pytest.param({"sasl": {}, "tls": {}}, None, id="off"),
    ],
)
def test_secrets_have_names(security: Manifest, path: str | None) -> None:
    assert [found.partition(":")[0] for found in problems(security=security)] == ([path] if path else [])


@pytest.mark.parametrize("name", samples.__all__)
def test_every_sample_is_accepted(name: str) -> None:
    sample = load_document(getattr(samples, name))

    assert validate(default(Memcached.model_validate(sample))) == ()
