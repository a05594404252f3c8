"""What is said of a mistake in the laboratory."""

from __future__ import annotations

from ..errors import MaxmeanError


class LabError(MaxmeanError):
    """An experiment, a setting or an engine that makes no sense; the message is one sentence that says what would."""
