"""Editor of one container of a pod."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import own_or_none, require
from ocf.editors.resource_quantities import quantity_text, set_resource
from ocf.lazy_types.kubernetes import (
    V1Container,
    V1ContainerPort,
    V1EnvVar,
    V1Probe,
    V1ResourceRequirements,
    V1VolumeMount,
)

__all__ = ["ContainerEditor"]

_DEFAULT_PROTOCOL: Final = "TCP"

_ENV: Final[KeyedList[V1Container, V1EnvVar]] = KeyedList("env", key=lambda variable: variable.name)
_ARGS: Final[KeyedList[V1Container, str]] = KeyedList("args", key=lambda arg: arg)
_PORTS: Final[KeyedList[V1Container, V1ContainerPort]] = KeyedList(
    "ports", key=lambda port: (port.container_port, port.protocol or _DEFAULT_PROTOCOL)
)
_VOLUME_MOUNTS: Final[KeyedList[V1Container, V1VolumeMount]] = KeyedList(
    "volume_mounts", key=lambda mount: mount.mount_path
)


class ContainerEditor(Editor[V1Container]):
    """Edits one container.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container.

    Args:
        raw: The live container.

    Example:
        >>> from kubernetes.client import V1Container, V1EnvVar
        >>> container = ContainerEditor(V1Container(name="web", image="web:1"))
        >>> container.set_image("web:2")
        >>> container.ensure_env_var(V1EnvVar(name="MODE", value="fast"), V1EnvVar(name="LEVEL", value="info"))
        >>> container.ensure_arg("--verbose")
        >>> container.set_resource_request("cpu", "250m")
        >>> container.raw.image, container.raw.args, container.raw.resources.requests
        ('web:2', ['--verbose'], {'cpu': '250m'})
    """

    __slots__ = ()

    def set_image(self, image: str) -> None:
        """Set the image.

        Args:
            image: Image reference, `registry/name:tag` or with a digest.

        Raises:
            ConfigError: If the image is not a string.
        """
        self._raw.image = require("image", image, str)

    def ensure_env_var(self, *variables: V1EnvVar) -> None:
        """Add environment variables or replace the first one of the same name.

        A variable is replaced as a whole, so `valueFrom` can replace `value`. The order matters if a value refers to
        another variable as `$(NAME)`: the other variable must come first.

        Args:
            variables: The variables; copies are stored.

        Raises:
            ConfigError: If an argument is not an environment variable; then none of them is stored.
        """
        _ENV.ensure(self._raw, *variables)

    def remove_env_var(self, *names: str) -> None:
        """Remove all environment variables with the given names.

        Args:
            names: Names of the variables.

        Raises:
            ConfigError: If a name is not a string.
        """
        _ENV.remove(self._raw, *(require("env", name, str) for name in names))

    def ensure_arg(self, *args: str) -> None:
        """Append arguments that are missing.

        Arguments are compared as whole strings: `--level=1` and `--level=2` are different arguments, and a flag with
        its value in a separate argument (`--level`, `1`) is not recognized.

        Args:
            args: The arguments.

        Raises:
            ConfigError: If an argument is not a string; then none of them is stored.
        """
        _ARGS.ensure(self._raw, *args)

    def remove_arg(self, *args: str) -> None:
        """Remove every occurrence of the given arguments.

        Args:
            args: The arguments, compared as whole strings.

        Raises:
            ConfigError: If an argument is not a string.
        """
        _ARGS.remove(self._raw, *(require("args", arg, str) for arg in args))

    def ensure_port(self, port: V1ContainerPort) -> None:
        """Add a port or replace the first one with the same number and protocol.

        Args:
            port: The port; a copy is stored. The default protocol is TCP.

        Raises:
            ConfigError: If the argument is not a container port.
        """
        _PORTS.ensure(self._raw, port)

    def remove_port(self, container_port: int, *, protocol: str = _DEFAULT_PROTOCOL) -> None:
        """Remove all ports with a number and a protocol.

        Args:
            container_port: Number of the port.
            protocol: `TCP`, `UDP` or `SCTP`.

        Raises:
            ConfigError: If the number is not an integer or the protocol is not a string.
        """
        number = require("ports", container_port, int)
        _PORTS.remove(self._raw, (number, require("protocol", protocol, str) or _DEFAULT_PROTOCOL))

    def ensure_volume_mount(self, mount: V1VolumeMount) -> None:
        """Add a volume mount or replace the first one with the same path.

        Args:
            mount: The mount; a copy is stored.

        Raises:
            ConfigError: If the argument is not a volume mount.
        """
        _VOLUME_MOUNTS.ensure(self._raw, mount)

    def remove_volume_mount(self, mount_path: str) -> None:
        """Remove all volume mounts with a path.

        Args:
            mount_path: The path, compared as a string.

        Raises:
            ConfigError: If the path is not a string.
        """
        _VOLUME_MOUNTS.remove(self._raw, require("volumeMounts", mount_path, str))

    def set_startup_probe(self, probe: V1Probe | None) -> None:
        """Set the startup probe; the other probes start once it has succeeded.

        Args:
            probe: Replaces the whole probe; a copy is stored. None unsets the field: the container then counts as
                started at once.

        Raises:
            ConfigError: If the argument is not a probe.
        """
        self._raw.startup_probe = own_or_none(self._raw, "startup_probe", probe)

    def set_readiness_probe(self, probe: V1Probe | None) -> None:
        """Set the readiness probe; a pod gets requests of Services while its containers are ready.

        Args:
            probe: Replaces the whole probe; a copy is stored. None unsets the field: the container is then ready as
                long as it runs.

        Raises:
            ConfigError: If the argument is not a probe.
        """
        self._raw.readiness_probe = own_or_none(self._raw, "readiness_probe", probe)

    def set_liveness_probe(self, probe: V1Probe | None) -> None:
        """Set the liveness probe; a container that fails it is restarted.

        Args:
            probe: Replaces the whole probe; a copy is stored. None unsets the field: the container is then restarted
                only when it ends.

        Raises:
            ConfigError: If the argument is not a probe.
        """
        self._raw.liveness_probe = own_or_none(self._raw, "liveness_probe", probe)

    def set_resource_limit(self, name: str, quantity: str | float | None) -> None:
        """Set the limit of one resource.

        Args:
            name: `cpu`, `memory`, or an extended resource.
            quantity: Quantity as a string (`500m`, `1Gi`) or a number. None removes the limit.

        Raises:
            QuantityError: If the quantity is invalid.
        """
        set_resource(self._raw, "limits", name, quantity)

    def set_resource_request(self, name: str, quantity: str | float | None) -> None:
        """Set the request of one resource.

        Args:
            name: `cpu`, `memory`, or an extended resource.
            quantity: Quantity as a string (`500m`, `1Gi`) or a number. None removes the request.

        Raises:
            QuantityError: If the quantity is invalid.
        """
        set_resource(self._raw, "requests", name, quantity)

    def set_resources(self, resources: V1ResourceRequirements | None) -> None:
        """Set all limits, requests and claims.

        Args:
            resources: Replaces all of them; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not resource requirements.
            QuantityError: If one of the quantities is invalid.
        """
        resources = own_or_none(self._raw, "resources", resources)
        if resources is not None:
            for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
                for name, quantity in (amounts or {}).items():
                    quantity_text(f"resources.{field}[{name}]", quantity)
        self._raw.resources = resources
