"""Alerting rules of the package, adapted to the metric names of an operator.

The rules are a file in Prometheus' own format, `alerts.yaml` beside this module, for the defaults of
`PrometheusRecorder`. Only the namespace of the metrics and the condition types differ from operator to operator.
"""

import re
from importlib.resources import files
from typing import Final

from ocf.errors import ConfigError
from ocf.runtime.monitoring.metrics import condition_metric

__all__ = ["alert_rules"]

_CONDITIONS: Final = ".*Ready|.*/Reconciled"
_NAMESPACE: Final = "ocf"
# Characters that would end the string in PromQL or in YAML, or start an escape.
_UNQUOTABLE: Final = re.compile(r'["\\\n]')


def alert_rules(namespace: str = _NAMESPACE, *, conditions: str = _CONDITIONS) -> str:
    r"""Return the alerting rules for an operator.

    Args:
        namespace: The namespace of its `PrometheusRecorder`.
        conditions: Regular expression (RE2, whole type) of the condition types that are good when they are True, the
            failure condition of the operator included. For other conditions only Unknown raises an alert.

    Returns:
        A rule file of Prometheus, YAML.

    Raises:
        ConfigError: If an argument cannot be part of a PromQL expression.

    Example:
        >>> rules = alert_rules("shops", conditions="WebReady|DataReady")
        >>> 'shops_controller_condition{condition=~"WebReady|DataReady", status="False"}' in rules
        True
    """
    metric = condition_metric(namespace)
    if not conditions or _UNQUOTABLE.search(conditions):
        raise ConfigError(
            rf"conditions must be a regular expression without quotes, backslashes and line ends, got {conditions!r}"
        )
    rules = files("ocf.runtime.monitoring").joinpath("alerts.yaml").read_text(encoding="utf-8")
    return rules.replace(condition_metric(_NAMESPACE), metric).replace(f'"{_CONDITIONS}"', f'"{conditions}"')
