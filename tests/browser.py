"""Pages in a real browser, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def browse(page: Path, folder: Path) -> tuple[str, str]:
    """Open a page in a headless browser that reaches no network; the page as built, and what its console said."""
    assert BROWSER is not None
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--dump-dom"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr"),
        page.resolve().as_uri(),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return run.stdout, "\n".join(line for line in run.stderr.splitlines() if "CONSOLE" in line)
