"""Errors of calls to admission webhooks."""

__all__ = ["UnansweredError"]


class UnansweredError(Exception):
    """A webhook could not be asked, or did not answer in time.

    Args:
        problem: What happened, as a server words it: `failed to call webhook: Post "https://…": connection refused`.
    """
