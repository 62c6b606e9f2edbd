"""A controller of JobSets: sets of Jobs that start, fail, restart and end together.

The kind is that of https://jobset.sigs.k8s.io; this controller is written with `ocf` from its documentation.
"""
