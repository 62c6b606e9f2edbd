"""What runs with the same load share: all that does not depend on what the autoscaler decides."""

from collections.abc import Hashable, Sequence

from ocf.simulation.engine.forecasts import Forecast
from ocf.simulation.engine.load_steps import LoadSteps
from ocf.simulation.engine.meters import Meter
from ocf.simulation.engine.pipeline import Times
from ocf.simulation.engine.stretches.calm import CalmSamples
from ocf.simulation.engine.stretches.timetable import Timetable
from ocf.simulation.load import LoadSeries
from ocf.simulation.scenario.prediction import Prediction

__all__ = ["Shared"]


class Shared:
    """What runs with the same load share.

    A run computes of it what it needs, and a later run with other settings of the HPA finds that.

    Args:
        load: The load.
    """

    __slots__ = ("_forecasts", "_samples", "_timetables", "load", "steps")

    def __init__(self, load: LoadSeries) -> None:
        self.load = load
        self.steps = LoadSteps(load)
        self._timetables: dict[tuple[int, float], Timetable] = {}
        self._samples: dict[Hashable, CalmSamples] = {}
        self._forecasts: dict[str, Forecast] = {}

    def forecast(self, prediction: Prediction | None) -> Forecast | None:
        """Return the predicted load; None without a prediction."""
        if prediction is None:
            return None
        key = prediction.model_dump_json()
        if key not in self._forecasts:
            # One is enough, see below.
            self._forecasts.clear()
            self._forecasts[key] = Forecast(prediction, self.steps)
        return self._forecasts[key]

    def timetable(self, period: int, per_pod: float) -> Timetable:
        """Return the timetable.

        Args:
            period: Microseconds between two syncs.
            per_pod: Load units per second that one pod may serve.
        """
        key = period, per_pod
        found = self._timetables.get(key)
        if found is None:
            # One is enough, as runs that follow each other differ in their HPA: they are as large as the load.
            self._timetables.clear()
            found = self._timetables[key] = Timetable(self.steps, period, per_pod)
        return found

    def samples(self, meters: Sequence[Meter], times: Times, period: int) -> CalmSamples:
        """Return the measurements of a calm workload.

        Args:
            meters: The meters of the metrics of the HPA.
            times: The times of the metrics pipeline.
            period: Microseconds between two syncs.
        """
        key = (*(each.measured for each in meters), times, period)
        found = self._samples.get(key)
        if found is None:
            self._samples.clear()
            found = self._samples[key] = CalmSamples(self.steps, meters, times)
        return found
