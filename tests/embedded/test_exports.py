"""Public names of the package."""

import ocf.embedded


def test_the_exports_are_sorted_and_complete() -> None:
    for name in ocf.embedded.__all__:
        getattr(ocf.embedded, name)  # some are imported on first use
    public = [name for name, value in vars(ocf.embedded).items() if isinstance(value, type)]

    assert ocf.embedded.__all__ == sorted(public)
