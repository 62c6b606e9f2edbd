"""Settings of the operator in a cluster, read from environment variables of its Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from examples.memcached.operator import NAME
from ocf.runtime.operator import ManagerOptions, environment_options, environment_switch

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the operator.

    Args:
        strict: Whether the webhooks also reject valid but probably unintended specs (`STRICT_VALIDATION`, `true` or
            `false`).
        environment: The variables of every operator, which `ocf.runtime.operator.environment_options` describes.
    """

    strict: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Args:
            environment: Usually `os.environ`.

        Raises:
            ConfigError: If a value is not allowed.

        Example:
            >>> settings = Settings.of({"WATCH_NAMESPACES": "shop, town", "STRICT_VALIDATION": "true"})
            >>> settings.options().namespaces, settings.strict
            (('shop', 'town'), True)
        """
        environment_options(NAME, environment)  # rejects an invalid value before anything is started
        return cls(strict=environment_switch(environment, "STRICT_VALIDATION"), environment=dict(environment))

    def options(self, registry: CollectorRegistry | None = None) -> ManagerOptions:
        """Return the options of the manager.

        Args:
            registry: The registry of all metrics.
        """
        return environment_options(NAME, self.environment, registry=registry)
