"""The commands of `ocf new`."""
