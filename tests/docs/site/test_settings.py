"""The page of the settings has every option with its type, default and meaning."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from ocf.component import Builder
from ocf.component.model.resource_options import ResourceOptions
from ocf.controllers.hpa.crd import HorizontalAutoscalerSettings
from ocf.runtime.operator import ManagerOptions, Operator
from scripts.site import settings
from scripts.site.settings import SETTINGS, Setting

OWNERS: Final = [each for owners in SETTINGS.values() for each in owners]


def found(owner: Any) -> dict[str, Setting]:
    return {each.name: each for each in settings.settings_of(owner)}


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_every_setting_has_a_type_and_a_meaning(owner: Any) -> None:
    listed = found(owner)

    assert listed
    assert [each for each in listed.values() if not each.type or not each.meaning.endswith((".", "…"))] == []


@pytest.mark.parametrize("owner", [Operator, ManagerOptions])
def test_every_field_of_a_dataclass_is_listed(owner: Any) -> None:
    assert list(found(owner)) == list(owner.__dataclass_fields__)


def test_the_defaults_of_options_of_a_resource_are_those_that_apply() -> None:
    listed = found(ResourceOptions)

    assert list(listed) == list(ResourceOptions.__annotations__)
    assert listed["participation"].default == "`Participation.REQUIRED`"
    assert listed["read_only"].default == "`False`"


@pytest.mark.parametrize(
    ("owner", "setting"),
    [
        pytest.param(
            ManagerOptions,
            Setting("events", "bool", "`True`", "Whether events are posted."),
            id="a plain default",
        ),
        pytest.param(
            ManagerOptions,
            Setting("clock", "Clock", "`SystemClock()`", "The clock of reconciles, events and leader election."),
            id="a default that is made",
        ),
        pytest.param(Operator, Setting("owner", "OwnerType[O]", "", "The kind of its owners."), id="required"),
        pytest.param(
            Operator,
            Setting("reconcile_timeout", "timedelta", "`5m0s`", found(Operator)["reconcile_timeout"].meaning),
            id="a duration",
        ),
        pytest.param(
            Builder,
            Setting(
                "with_poll_interval(interval)", "method", "", found(Builder)["with_poll_interval(interval)"].meaning
            ),
            id="a method of a builder",
        ),
    ],
)
def test_a_setting_is_shown_as_the_code_declares_it(owner: Any, setting: Setting) -> None:
    assert setting in settings.settings_of(owner)


def test_a_field_of_an_object_has_the_name_of_the_api() -> None:
    listed = found(HorizontalAutoscalerSettings)

    assert listed["syncPeriodSeconds"].meaning == "The time between two reconciles of the autoscaler, in seconds."


def test_the_page_says_which_settings_are_required() -> None:
    page = settings.page()

    assert "\n## Operators\n\n### Operator\n\nAn operator: it reconciles the components of every owner.\n" in page
    assert "| `owner`<br><small>`OwnerType[O]`</small> | required | The kind of its owners. |" in page


def test_a_table_of_settings_shows_one_sentence_of_each() -> None:
    page = settings.page()
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    shown = [re.sub(r"<summary>(.*?)</summary>.*(?=</details>)", r"\1", row).rpartition(" | ")[2] for row in rows]

    assert "| <details><summary>Name of the operator, a DNS label such as `shop-operator`.</summary>It is in " in page
    assert max(map(len, shown)) < 300
