"""The metrics pipeline and the controller settings of a scenario."""

from datetime import timedelta

from ocf.autoscaling.algorithm import Settings
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.fields import Fraction, Model, Period, PositivePeriod, Rate

__all__ = ["HpaControllerSettings", "MetricsPipeline", "Outage"]


class Outage(Model):
    """A time without metrics.

    Args:
        at: Time since the start of the simulation.
        duration: How long no metric can be read.
    """

    at: Period
    duration: PositivePeriod


class MetricsPipeline(Model):
    """How usage becomes samples.

    Args:
        scrape_period: Time between two measurements.
        window: Time over which a sample averages; None: the scrape period.
        delay: Time from the end of a measurement until the controller can read it.
        dropped: Share of the samples of pods that are missing, at random.
        outages: Times without metrics.
    """

    scrape_period: PositivePeriod = timedelta(seconds=15)
    window: PositivePeriod | None = None
    delay: Period = timedelta()
    dropped: Fraction = 0.0
    outages: tuple[Outage, ...] = ()


class HpaControllerSettings(Model):
    """Settings of the HPA controller; what is not set has the default of the kube-controller-manager.

    Args:
        kubernetes: Release of Kubernetes whose feature gates apply, such as `1.36`.
        sync_period: Time between two syncs.
        tolerance: How far a ratio may differ from 1 without a rescale.
        downscale_stabilization: Stabilization window for scaling down, if the HPA does not set one.
        cpu_initialization_period: Time after the start of a pod in which its cpu samples may be ignored.
        initial_readiness_delay: Time after the start of a pod in which a change to unready counts as never ready.
    """

    kubernetes: str | None = None
    sync_period: PositivePeriod = timedelta(seconds=15)
    tolerance: Rate = 0.1
    downscale_stabilization: PositivePeriod = timedelta(minutes=5)
    cpu_initialization_period: PositivePeriod = timedelta(minutes=5)
    initial_readiness_delay: PositivePeriod = timedelta(seconds=30)

    def settings(self) -> Settings:
        """Return the settings for `ocf.autoscaling.algorithm.decide`.

        Raises:
            ConfigError: If the release is unknown.
        """
        return Settings(
            sync_period=self.sync_period,
            tolerance=self.tolerance,
            downscale_stabilization=self.downscale_stabilization,
            cpu_initialization_period=self.cpu_initialization_period,
            initial_readiness_delay=self.initial_readiness_delay,
            features=FeatureGates() if self.kubernetes is None else FeatureGates.for_release(self.kubernetes),
        )
