"""Requests with admission policies and match conditions, for `scripts/record/sequences.py`."""
