"""Requests with admission policies and match conditions, for `record_sequences.py`."""
