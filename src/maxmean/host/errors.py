"""What is said of a user's mistake."""

from __future__ import annotations


class HostError(ValueError):
    """An environment, a setting or a file that does not fit; the message is one sentence that says what would."""
