"""Commands about the runs of a job: tune, probe, why, export."""
