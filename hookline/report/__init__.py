"""The run report: what a run's folder tells, as one page, as a live page and as text."""
