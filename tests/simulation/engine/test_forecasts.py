"""Forecasts of the load, and what the HPA does with them."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.simulation import InputError, Scenario, Shared, load_series, parse_scenario, simulate
from ocf.simulation.engine.clock import SECOND
from ocf.simulation.engine.forecasts import Forecast, Forecaster, forecaster_of
from ocf.simulation.engine.load_steps import LoadSteps
from ocf.simulation.load import LoadSeries
from ocf.simulation.measures import with_measures
from ocf.simulation.result import ACTIVATED, SimulationResult
from ocf.simulation.scenario.prediction import Prediction
from tests.simulation.engine.scenarios import hpa_of, run
from tests.simulation.engine.test_exactness import calm_loads, calm_scenarios, same, steps_of


def prediction(kind: str = "SeasonalNaive", *, season: str = "4m", **fields: Any) -> Prediction:
    weights = {name: fields.pop(name) for name in ("level", "trend", "seasonal") if name in fields}
    return Prediction.model_validate({"forecaster": {"type": kind, "season": season, **weights}, **fields})


def after(forecaster: Forecaster, values: list[float]) -> Forecaster:
    for value in values:
        forecaster.observe(value)
    return forecaster


@pytest.mark.parametrize(
    ("seen", "ahead", "expected"),
    [
        pytest.param([1, 2, 3, 4, 5], 1, 2, id="a season before the next one"),
        pytest.param([1, 2, 3, 4, 5], 4, 5, id="a whole season ahead"),
        pytest.param([1, 2, 3, 4, 5], 5, 2, id="more than a season ahead"),
        pytest.param([1, 2, 3], 1, 3, id="the last one without a season"),
        pytest.param([1, 2, 3], 2, 1, id="the first one of the season"),
    ],
)
def test_the_naive_forecast_is_that_of_a_season_before(seen: list[float], ahead: int, expected: float) -> None:
    assert after(forecaster_of(prediction()), seen).forecast(ahead) == expected


SERIES: list[float] = [10, 20, 30, 16, 12, 23, 33, 15, 15, 25, 41, 18, 14]


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        pytest.param(1, 25.8543494754, id="the next one"),
        pytest.param(2, 37.4138980103, id="two"),
        pytest.param(3, 18.9808906424, id="three"),
        pytest.param(5, 26.8712951383, id="more than a season"),
        pytest.param(6, 38.4308436732, id="more than a season and one"),
    ],
)
def test_exponential_smoothing_is_that_of_statsmodels(ahead: int, expected: float) -> None:
    """ExponentialSmoothing of statsmodels 0.15, additive, from level and season of the first season, without trend.

    For exactly a season ahead, statsmodels takes the season of before the last number.
    """
    forecaster = after(forecaster_of(prediction("HoltWinters", level=0.4, trend=0.1, seasonal=0.3)), SERIES)
    assert forecaster.forecast(ahead) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("kind", ["SeasonalNaive", "HoltWinters"])
def test_a_load_that_repeats_is_predicted_exactly(kind: str) -> None:
    pattern = [10.0, 40.0, 30.0, 16.0]
    forecaster = after(forecaster_of(prediction(kind)), pattern * 3 + pattern[:1])
    assert [forecaster.forecast(ahead) for ahead in range(1, 9)] == pytest.approx((pattern[1:] + pattern[:1]) * 2)


@given(st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=40), st.integers(1, 30))
def test_a_forecast_is_a_load(values: list[float], ahead: int) -> None:
    for chosen in (prediction(), prediction("HoltWinters", trend=0.9)):
        found = after(forecaster_of(chosen), values).forecast(ahead)
        assert math.isfinite(found)
        assert found >= 0


def test_a_forecast_uses_the_mean_of_each_step_and_nothing_later() -> None:
    steps = LoadSteps(LoadSeries.of([(0, 10), (30, 20), (60, 50), (90, 0)]))
    found = Forecast(prediction(season="2m", horizon="1m"), steps)
    minutes = [found.at(minute * 60 * SECOND) for minute in (0, 1, 2, 3)]
    # At 0 the load at the start, then the mean of the first minute; later that of two minutes before the horizon.
    assert minutes == [10.0, 15.0, 25.0, 0.0]
    changed = LoadSteps(LoadSeries.of([(0, 10), (30, 20), (60, 50), (90, 0), (120, 99)]))
    assert [Forecast(prediction(season="2m", horizon="1m"), changed).at(at * SECOND) for at in (0, 60, 120)] == minutes[
        :3
    ]


def test_a_forecast_does_not_depend_on_the_order_of_questions() -> None:
    steps = LoadSteps(LoadSeries.of([(20.0 * number, number % 7) for number in range(60)]))
    one, other = Forecast(prediction(), steps), Forecast(prediction(), steps)
    times = [90 * number * SECOND for number in range(-2, 12)]
    assert [one.at(time) for time in times] == [other.at(time) for time in reversed(times)][::-1]


HPA = hpa_of(minReplicas=1, maxReplicas=30)
DAILY: dict[str, Any] = {
    "hpa": HPA,
    "workload": {"capacity": 10, "requests": {"cpu": "1"}, "readiness": {"mean": "3m"}},
    "load": {"type": "Daily", "rates": {"07:55": 5, "08:05": 150, "12:00": 120, "18:00": 20}},
    "duration": "72h",
}


def daily(**fields: Any) -> SimulationResult:
    scenario = Scenario.model_validate({**DAILY, **fields}, by_alias=True, by_name=False)
    return with_measures(simulate(scenario, load_series(scenario)), scenario)


@pytest.mark.parametrize("kind", ["SeasonalNaive", "HoltWinters"])
def test_a_prediction_saves_overload_of_a_daily_rise(kind: str) -> None:
    alone = daily()
    predicted = daily(prediction={"forecaster": {"type": kind}, "horizon": "10m"})
    assert predicted.measures["overload_time"] < 0.55 * alone.measures["overload_time"]
    assert predicted.measures["pod_hours"] < 1.2 * alone.measures["pod_hours"]


def test_the_hpa_takes_the_prediction_where_it_is_more() -> None:
    found = daily(prediction={"forecaster": {"type": "SeasonalNaive"}, "horizon": "10m"})
    reasons = {each.reason for each in found.actions}
    assert "external metric predicted-load(nil) above target" in reasons
    # On the first day, nothing is known of the rise before it.
    before = [each for each in found.actions if 86_400 > each.time > 7 * 3600 and "predicted" in each.reason]
    assert all(each.time >= 8 * 3600 - 300 for each in before)


@given(calm_scenarios(), calm_loads(), st.sampled_from(["SeasonalNaive", "HoltWinters"]), st.integers(0, 400))
@settings(max_examples=60)
def test_syncs_that_run_together_give_what_snapshots_give_with_a_prediction(
    scenario: Scenario, changes: list[tuple[int, float]], kind: str, horizon: int
) -> None:
    steps = steps_of(changes)
    shared = Shared(LoadSeries.of(steps))
    for minutes in (3, 4, 4):
        chosen = prediction(kind, season=f"{minutes}m", horizon=f"{horizon}s")
        tried = scenario.model_copy(update={"prediction": chosen})
        full = run(tried, *steps, full=True)
        same(run(tried, *steps), full)
        same(run(tried, *steps, shared=shared), full)


def test_an_edited_hpa_has_the_prediction_too() -> None:
    edits = [{"at": "30h", "spec": {**HPA["spec"], "maxReplicas": 25}}]
    found = daily(prediction={"forecaster": {"type": "SeasonalNaive"}, "horizon": "10m"}, hpaEdits=edits)
    assert any(each.time > 30 * 3600 and "predicted" in each.reason for each in found.actions)


@pytest.mark.parametrize(
    ("thresholds", "woken"),
    [
        pytest.param({}, 451, id="any predicted load"),
        pytest.param({"predicted-load": 70}, 485, id="a threshold"),
        pytest.param({"predicted-load": 1000}, 535, id="only the load itself"),
    ],
)
def test_a_prediction_wakes_a_workload_before_its_load(thresholds: dict[str, float], woken: int) -> None:
    """The load rises from 0 at 8:00 to 120 at 9:00, and the horizon is half an hour; times are minutes of the day."""
    target = {"type": "AverageValue", "averageValue": "10"}
    metric = {"type": "External", "external": {"metric": {"name": "arrived"}, "target": target}}
    scenario = Scenario.model_validate(
        {
            "hpa": hpa_of(metric),
            "workload": {"capacity": 10, "signals": {"arrived": {"source": "load"}}},
            "load": {"type": "Daily", "rates": {"08:00": 0, "09:00": 120, "17:00": 120, "17:10": 0}},
            "prediction": {"forecaster": {"type": "SeasonalNaive"}, "horizon": "30m"},
            "activator": {"activationThresholds": {"arrived": 110, **thresholds}},
            "duration": "48h",
        },
        by_alias=True,
        by_name=False,
    )
    found = simulate(scenario, load_series(scenario))
    times = [each.time / 60 - 1440 for each in found.actions if each.rule == ACTIVATED and each.time > 86_400]
    assert times == [pytest.approx(woken, abs=1)]


TEXT = """\
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 9}
workload: {capacity: 10, requests: {cpu: 1}}
load: {type: Steady, rate: 1}
duration: 48h
prediction: PREDICTION
"""


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param(
            "{forecaster: {type: HoltWinters}}\nactivator: {activationThresholds: {predicted: 1}}",
            "activationThresholds.predicted: the HPA has no metric of type External or Object with this name; it has"
            " predicted-load",
            id="a threshold of another name",
        ),
        pytest.param("{forecaster: {type: Prophet}}", "prediction.forecaster.type: must be one of", id="another type"),
        pytest.param(
            "{forecaster: {type: SeasonalNaive, season: 90s}}",
            "the season must be a multiple of the step, 1m0s, got 1m30s",
            id="a part of a step",
        ),
        pytest.param(
            "{forecaster: {type: HoltWinters, season: 48h}}",
            "prediction.forecaster.season: must be less than the duration, 48h0m0s",
            id="no season before",
        ),
        pytest.param(
            "{forecaster: {type: HoltWinters, level: 2}}", "prediction.forecaster.level: must be", id="a weight above 1"
        ),
    ],
)
def test_an_invalid_prediction_is_an_error_of_its_field(written: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        parse_scenario(TEXT.replace("PREDICTION", written))
    assert problem in str(error.value)
