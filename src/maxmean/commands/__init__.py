"""The command line's commands, one file for each family; :mod:`maxmean.cli` runs them."""

from ..errors import MaxmeanError


class CommandError(MaxmeanError):
    """Options that do not go together; the message is one sentence that says which."""
