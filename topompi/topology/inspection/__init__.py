"""Studies of a fabric for administrators: routes per link, changes, failures, and jobs that share links."""

from .difference import Difference, compare
from .jobs import JobRow, JobsStudy, study_jobs
from .rails import select_rails
from .slow import slow_cables, usual_rates
from .usage import LinkUse, leaf_rows, link_rows, link_use
from .without import without

__all__ = [
    "Difference",
    "JobRow",
    "JobsStudy",
    "LinkUse",
    "compare",
    "leaf_rows",
    "link_rows",
    "link_use",
    "select_rails",
    "slow_cables",
    "study_jobs",
    "usual_rates",
    "without",
]
