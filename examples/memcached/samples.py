"""Sample caches: the two of the autoscaling guide, a plain one, and one with every feature enabled.

Tests, golden files and the documentation share them.
"""

from __future__ import annotations

from typing import Final

__all__ = ["AUTOSCALED", "DEFAULTS", "EVERYTHING", "PLAIN"]

PLAIN: Final = """
apiVersion: memcached.c5c3.io/v1alpha1
kind: Memcached
metadata:
  name: my-cache
  namespace: default
spec:
  replicas: 3
"""

AUTOSCALED: Final = """
apiVersion: memcached.c5c3.io/v1alpha1
kind: Memcached
metadata:
  name: my-cache
  namespace: default
spec:
  replicas: 3
  autoscaling:
    enabled: true
    minReplicas: 2
    maxReplicas: 10
    metrics:
      - type: Resource
        resource:
          name: cpu
          target:
            type: Utilization
            averageUtilization: 70
    behavior:
      scaleDown:
        stabilizationWindowSeconds: 600
"""

DEFAULTS: Final = """
apiVersion: memcached.c5c3.io/v1alpha1
kind: Memcached
metadata:
  name: my-cache
  namespace: default
spec:
  autoscaling:
    enabled: true
    maxReplicas: 5
"""

EVERYTHING: Final = """
apiVersion: memcached.c5c3.io/v1alpha1
kind: Memcached
metadata:
  name: my-cache
  namespace: default
  annotations:
    memcached.c5c3.io/restart-trigger: "1"
spec:
  image: registry.example.com:5000/memcached:1.6.29
  resources:
    requests: {cpu: 100m, memory: 192Mi}
    limits: {memory: 256Mi}
  memcached:
    maxMemoryMB: 128
    maxConnections: 2048
    threads: 8
    maxItemSize: 2m
    verbosity: 2
    extraArgs: ["--disable-flush-all"]
  highAvailability:
    antiAffinityPreset: hard
    topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app.kubernetes.io/instance: my-cache}}
    podDisruptionBudget: {enabled: true, maxUnavailable: 25%}
    gracefulShutdown: {enabled: true, preStopDelaySeconds: 15, terminationGracePeriodSeconds: 60}
  monitoring:
    enabled: true
    exporterResources:
      requests: {cpu: 10m}
    serviceMonitor:
      additionalLabels: {release: prometheus}
  security:
    podSecurityContext: {runAsNonRoot: true, runAsUser: 11211}
    containerSecurityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true}
    sasl: {enabled: true, credentialsSecretRef: {name: my-cache-sasl}}
    tls: {enabled: true, certificateSecretRef: {name: my-cache-tls}, enableClientCert: true}
    networkPolicy:
      enabled: true
      allowedSources:
        - podSelector: {matchLabels: {app: web}}
  autoscaling:
    enabled: true
    minReplicas: 2
    maxReplicas: 10
  service:
    annotations: {example.com/team: cache}
"""
