"""Names of entries whose API makes them optional: only an entry with a name can be replaced."""

from __future__ import annotations

from ocf.errors import ConfigError

__all__ = ["require_name"]


def require_name(field: str, name: str | None) -> str:
    """Return the name of an entry that is to be replaced.

    Args:
        field: The list, for the message.
        name: The name of the entry.

    Raises:
        ConfigError: If it has no name.
    """
    if not name:
        raise ConfigError(f"{field}: an entry without a name cannot be replaced; give it a name, or append it")
    return name
