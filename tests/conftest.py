"""The fixtures that users get are those of our own tests, too."""

pytest_plugins = ["ocf.testing.plugin"]
