"""How long things take: `python -m benchmarks` measures, judges against the limits, and says so.

`timer` measures, `figures` turns samples into rows, `machine` says where; every other module is one suite: what is
measured, with which limit, and against what. `docs/performance.md` explains the figures.
"""
