"""A daemon's log: one line of JSON per event on standard error."""

from __future__ import annotations

import json
import logging
import time

__all__ = ["AsJson", "log_as_json"]


class AsJson(logging.Formatter):
    """A formatter that writes a log event as one line of JSON: time, level, event, and the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return an event as one line of JSON.

        :param record: the event; its attribute ``fields``, if any, holds the event's own fields.
        """
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_as_json(name: str) -> None:
    """Write the events of a logger, and of its child loggers, to standard error as JSON.

    :param name: name of the logger.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(AsJson())
    logger = logging.getLogger(name)
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
