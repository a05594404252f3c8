"""What is said of a user's mistake."""

from __future__ import annotations

from ...errors import MaxmeanError
from ...mev.show import shortened


class HostError(MaxmeanError):
    """An environment, a setting or a file that does not fit; the message is one sentence that says what would."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C, heard between two steps: all is in order, and can be saved. A second one stops anywhere."""


def sentence(error: BaseException) -> str:
    """What a library says of an error, on one short line and without its full stop, to be quoted in a sentence of ours."""
    return shortened(" ".join(str(error)[:10_000].split()).rstrip("."), 300)
