"""Benchmarks: `python -m benchmarks` measures, compares with the limits, and reports.

`timer` measures, `figures` turns samples into rows, and `machine` describes the machine. Every other module is one
suite: the measured operations, their limits, and their baselines. `docs/project/performance.md` explains the figures.
"""
