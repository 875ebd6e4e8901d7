"""The least time of collectives on many fabrics, and how near schedules come to it."""
