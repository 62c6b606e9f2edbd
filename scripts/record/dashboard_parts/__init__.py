"""The picture of the dashboard: metrics of a run in virtual time, what Prometheus's engine makes of them, a drawing."""
