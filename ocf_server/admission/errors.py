"""Errors of calls to admission webhooks."""

__all__ = ["UnansweredError"]


class UnansweredError(Exception):
    """A webhook could not be called, or did not respond in time.

    Args:
        problem: The problem in the words of a real API server, for example
            `failed to call webhook: Post "https://…": connection refused`.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
