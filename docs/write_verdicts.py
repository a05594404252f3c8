"""Write the verdicts of the shipped results into ``docs/reproduction.md``, between its two marks."""

from __future__ import annotations

import re
from pathlib import Path

from maxmean.lab.claims import markdown
from maxmean.lab.run import SHIPPED, verdicts
from maxmean.lab.store import Store

PAGE = Path(__file__).with_name("reproduction.md")
BEGIN, END = "<!-- claims -->\n", "<!-- end of claims -->"


def main() -> None:
    """Replace what stands between the marks."""
    fresh = BEGIN + markdown(verdicts(Store(SHIPPED, create=False))) + END
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: fresh, PAGE.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
