"""Validation of the built-in kinds, with the errors of the API server."""

from ocf_server.validation.kinds import create_errors, update_errors

__all__ = ["create_errors", "update_errors"]
