"""Editor of the spec of a ScaledObject of KEDA."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList, require_name
from ocf.editors.model_values import own, require
from ocf.objects.third_party.lazy import ScaledObjectSpec, ScaleTargetRef, ScaleTrigger

__all__ = ["ScaledObjectSpecEditor"]

_TRIGGERS: Final[KeyedList[ScaledObjectSpec, ScaleTrigger]] = KeyedList("triggers", key=lambda trigger: trigger.name)


class ScaledObjectSpecEditor(Editor[ScaledObjectSpec]):
    """Edits the spec of a ScaledObject.

    Source: https://keda.sh/docs/latest/reference/scaledobject-spec/.

    Args:
        raw: The live spec.

    Example:
        >>> from ocf.objects.third_party.keda import ScaledObjectSpec, ScaleTargetRef, ScaleTrigger
        >>> spec = ScaledObjectSpecEditor(ScaledObjectSpec(scale_target_ref=ScaleTargetRef(name="web"), triggers=[]))
        >>> spec.ensure_trigger(ScaleTrigger(type="cron", name="day", metadata={"timezone": "UTC"}))
        >>> spec.set_max_replica_count(20)
        >>> [trigger.name for trigger in spec.raw.triggers], spec.raw.max_replica_count
        (['day'], 20)
    """

    __slots__ = ()

    def set_scale_target_ref(self, ref: ScaleTargetRef) -> None:
        """Set the object that is scaled.

        Args:
            ref: Replaces the whole reference; a copy is stored.

        Raises:
            ConfigError: If the argument is not a reference to a scale target.
        """
        self._raw.scale_target_ref = own(self._raw, "scale_target_ref", ref)

    def set_min_replica_count(self, replicas: int | None) -> None:
        """Set the least number of replicas.

        Args:
            replicas: Number of replicas. None unsets the field; KEDA then uses 0.
        """
        self._raw.min_replica_count = replicas

    def set_max_replica_count(self, replicas: int | None) -> None:
        """Set the largest number of replicas.

        Args:
            replicas: Number of replicas. None unsets the field; KEDA then uses 100.
        """
        self._raw.max_replica_count = replicas

    def set_idle_replica_count(self, replicas: int | None) -> None:
        """Set the number of replicas while no trigger is active.

        Args:
            replicas: Number of replicas, less than the minimum; KEDA supports 0 only. None unsets the field; the
                minimum then applies.
        """
        self._raw.idle_replica_count = replicas

    def set_polling_interval(self, seconds: int | None) -> None:
        """Set how often the triggers are checked.

        Args:
            seconds: Time in seconds. None unsets the field; KEDA then uses 30.
        """
        self._raw.polling_interval = seconds

    def set_cooldown_period(self, seconds: int | None) -> None:
        """Set how long no trigger must be active before the target is scaled to zero.

        Args:
            seconds: Time in seconds. None unsets the field; KEDA then uses 300.
        """
        self._raw.cooldown_period = seconds

    def ensure_trigger(self, trigger: ScaleTrigger) -> None:
        """Add a trigger or replace the first one of the same name.

        Args:
            trigger: The trigger; a copy is stored. It replaces the other one as a whole.

        Raises:
            ConfigError: If the argument is not a trigger, or has no name.
        """
        require_name("triggers", own(self._raw, "triggers", trigger).name)
        _TRIGGERS.ensure(self._raw, trigger)

    def append_trigger(self, trigger: ScaleTrigger) -> None:
        """Append a trigger; it may have no name.

        Args:
            trigger: The trigger; a copy is stored.

        Raises:
            ConfigError: If the argument is not a trigger.
        """
        self._raw.triggers = [*self._raw.triggers, own(self._raw, "triggers", trigger)]

    def remove_trigger(self, name: str) -> None:
        """Remove all triggers with a name.

        Args:
            name: Name of the trigger.

        Raises:
            ConfigError: If the name is not a string.
        """
        _TRIGGERS.remove(self._raw, require("triggers", name, str))

    def remove_triggers(self, trigger_type: str) -> None:
        """Remove all triggers of a type.

        Args:
            trigger_type: Type of the triggers, `cron`.

        Raises:
            ConfigError: If the type is not a string.
        """
        wanted = require("triggers", trigger_type, str)
        _TRIGGERS.remove_where(self._raw, lambda trigger: trigger.type == wanted)
