"""The room's public names."""

import ocf.cluster.embedded


def test_the_exports_are_sorted_and_complete() -> None:
    public = [name for name, value in vars(ocf.cluster.embedded).items() if isinstance(value, type)]

    assert ocf.cluster.embedded.__all__ == sorted(public)
