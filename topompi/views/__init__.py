"""The job's topology as what schedules and mappers take."""
