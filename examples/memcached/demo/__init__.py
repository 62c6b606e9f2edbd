"""A cache's life with its operator, on an embedded API server over HTTP: `python -m examples.memcached.demo`.

The operator is the real one, and talks to the server as it would in a cluster, webhooks and events included. What a
cluster has besides, pods and the HPA controller, is `played`. No operator in production has such a package.
"""
