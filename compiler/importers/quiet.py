"""Suppresses warnings of torch about its own calls, and tracebacks of expected errors."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("torch.export", "torch._subclasses.fake_tensor")


@contextmanager
def quiet() -> Iterator[None]:
    """Let torch neither warn nor log while it reads what a user wrote."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
