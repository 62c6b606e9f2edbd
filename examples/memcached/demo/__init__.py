"""Demo of a cache and its operator, on an embedded API server over HTTP: `python -m examples.memcached.demo`.

The operator is the real one, and talks to the server as it would in a cluster, webhooks and events included. The module
`played` simulates the pods and the HPA controller. An operator in production does not need such a package.
"""
