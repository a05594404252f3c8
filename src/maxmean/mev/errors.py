"""What can be wrong with a request for an estimate: the data, a setting, or the kernel."""

from __future__ import annotations

from ..errors import MaxmeanError


class DataError(MaxmeanError):
    """Data that an estimator cannot use; the message is one sentence that names the option, column, row or value."""


class DataWarning(UserWarning):
    """What was guessed or left out when data were read, and changes the answer; the message is one sentence."""


class PictureWarning(UserWarning):
    """What a picture cannot show, for want of a font; the message is one sentence."""


class ArgumentError(MaxmeanError):
    """An argument or a setting outside its range; the message is one sentence that names it and says what it may be."""


class KernelError(MaxmeanError):
    """A function or a parameter that does not make a kernel; the message says which requirement it breaks."""
