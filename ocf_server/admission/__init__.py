"""Admission webhooks: matching of requests, AdmissionReviews, and the client that calls webhooks."""

__all__: list[str] = []
