"""Public names of the package."""

import ocf_server


def test_the_exports_are_sorted_and_complete() -> None:
    for name in ocf_server.__all__:
        getattr(ocf_server, name)  # some are imported on first use
    public = [name for name, value in vars(ocf_server).items() if isinstance(value, type)]

    assert ocf_server.__all__ == sorted(public)
