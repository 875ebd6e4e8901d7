"""A headless Chromium, for tests of pages."""

import shutil
import subprocess
from pathlib import Path

import pytest


def chromium(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A browser that ends by itself, on a page; skips if none is installed."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is here")
    usual = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    words = [browser, *usual, f"--user-data-dir={tmp_path / 'browser'}", *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, check=True)
