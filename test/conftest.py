"""Lets a test import the helper modules beside it: files are collected by path, so that their names may repeat."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = {"__pycache__", "Inputs", "models"}

for folder in sorted({file.parent for file in HERE.rglob("*.py")} - {HERE}):
    if not SKIPPED & set(folder.relative_to(HERE).parts):
        sys.path.append(str(folder))
