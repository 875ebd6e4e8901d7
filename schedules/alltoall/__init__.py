"""All-to-all exchanges: direct ones, aggregated ones, and those that keep routes from meeting on a link."""
