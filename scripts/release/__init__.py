"""Releases: the address of the repository, and the checks, the build and the tag of a release."""
