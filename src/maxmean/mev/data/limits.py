"""Limits on what is read from an untrusted file, each with its reason.

A file can be made so that reading it takes any amount of memory. Within these bounds the command line stays below 1 GB, and they
are far above what a table about options needs. Python data is the caller's own: only the bounds on options apply to it.
"""

from __future__ import annotations

LONGEST_ROW = 4 << 20
"""Bytes in one row of a CSV file, the header included: 200 for each of 20,000 columns. Rows are parsed so much at once."""

MOST_COLUMNS = 20_000
"""Columns of a table; each costs kilobytes, whatever it holds."""

MOST_VALUES = 20_000_000
"""Numbers kept from a file, each of which costs about thirty bytes until they are sorted by option."""

TOO_LARGE = (
    f"there are more than {MOST_VALUES:,} values, the most that can be read: summarise them first, as a mean with its "
    "standard error for each option (--mean, --se)"
)

MOST_TEXT = 64 << 20
"""Bytes of text in one column of the rows of a Parquet file that are looked at together: a kilobyte for each of 65,536."""

MOST_UNPACKED = 256 << 20
"""Bytes that the largest pages of all columns of a Parquet file take when they are unpacked. A page has a megabyte as a rule; one
of zeros can unpack to thousands of times its size."""

MOST_INFLATED = 4 << 30
"""Bytes that a compressed file may unpack to; they are streamed, and so it is time that is bounded here."""

MOST_CELLS = 20_000_000
"""Cells of a sheet that are looked at, the empty ones included."""

MOST_PAGES = 1_000_000
"""Pages in a Parquet file; checking that many takes half a minute."""

MOST_OPTIONS = 20_000
"""Options compared with each other: what is drawn for every bootstrap resample, and the time, grow with them."""

TOO_MANY = (
    f"there are more than {MOST_OPTIONS:,} options, the most that can be compared: keep the best ones, or group them"
)

MOST_PAIRED = 2_500
"""Options with paired observations: the covariances of every two of them take 50 MB, and are held several times at once."""

TOO_MANY_PAIRED = (
    f"there are more than {MOST_PAIRED:,} options, the most that can be compared as pairs: treat the rows as unpaired "
    "with paired=False (--unpaired), or keep the best ones"
)

MOST_RESAMPLES = 1_000_000
"""Bootstrap resamples: the estimates of ten methods from each are kept, and an interval's ends are known to one in a thousand."""
