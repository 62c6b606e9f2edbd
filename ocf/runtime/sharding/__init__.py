"""Sharding: several replicas of an operator are at work, and each reconciles a part of the owners."""

from ocf.runtime.sharding.settings import Sharding

__all__ = ["Sharding"]
