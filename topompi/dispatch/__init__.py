"""From a call to what runs it."""
