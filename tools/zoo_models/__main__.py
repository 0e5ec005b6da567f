# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of many frameworks: export them, compile them for each target with fixed and open sizes, compare results.

Without a command: export and run. Environments of the frameworks are made by `tools/zoo setup`, outside `.venv`.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from zoo_models import environments
from zoo_models.export.families import FAMILIES
from zoo_models.running import campaign
from zoo_models.torch_modules import table

RESULTS = environments.ROOT / "tools/bench/results"


def parse() -> argparse.Namespace:
    """The command line."""
    today = datetime.date.today().isoformat()
    parser = argparse.ArgumentParser(prog="tools/zoo", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("setup", "export", "run", "list", "torch"),
                        help="only this step; torch: modules under torch.compile")  # fmt: skip
    parser.add_argument("--models", nargs="*", default=[], metavar="FAMILY/NAME",
                        help="patterns (for torch of NAME); default: all")  # fmt: skip
    parser.add_argument("--targets", default="cpu,cuda:sm_80,cuda:sm_90a", help="by comma (default: %(default)s)")
    parser.add_argument("--forms", default="fixed,open", help="fixed sizes, open sizes (default: both)")
    parser.add_argument("--folder", type=Path, default=environments.ROOT / "build/zoo", help="where models are kept")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=FOLDER",
                        help="the environment torch, jax or keras is there (default: build/zoo-NAME)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=300, help="seconds for a model, target and form (default 300)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: 1)")
    parser.add_argument("--again", action="store_true", help="export and run also what is there already")
    parser.add_argument("--date", default=today, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path,
                        help="file of results, which keeps its rows (default: in tools/bench/results)")  # fmt: skip
    options = parser.parse_args()
    kind = "torch-modules" if options.command == "torch" else "zoo"
    options.json = options.json or RESULTS / f"{kind}-{today}.json"
    try:
        families([] if options.command == "torch" else options.models)
        environments.places(options.env)
        campaign.check_forms(options.forms.split(","))
    except ValueError as error:
        parser.error(str(error))
    return options


def families(wanted: Sequence[str]) -> dict[str, list[str]]:
    """The patterns of names in each family that is wanted, none: all of it.

    Raises:
        ValueError: no family has such a name.
    """
    if not wanted:
        return {name: [] for name, family in FAMILIES.items() if not family.timed}
    found: dict[str, list[str]] = {}
    for pattern in wanted:
        family, _, name = pattern.partition("/")
        meant = fnmatch.filter(FAMILIES, family)
        if not meant:
            raise ValueError(f"--models {pattern}: not FAMILY/NAME with a FAMILY of {', '.join(FAMILIES)}")
        for each in meant:
            found.setdefault(each, []).append(name or "*")
    return found


def export(options: argparse.Namespace, places: Mapping[str, Path]) -> None:
    """Export each family in its environment; a line is printed where there is none."""
    for family, names in families(options.models).items():
        python = places[FAMILIES[family].environment] / "bin/python"
        if not python.exists():
            print(f"{family}: not exported, as {python} is not there: tools/zoo setup makes it")
            continue
        command = [str(python), "-W", "ignore", "-m", "zoo_models.export", family, str(options.folder)]
        command += ["--again"] * options.again + (["--only", *names] if names else [])
        path = {"PYTHONPATH": str(environments.ROOT / "tools"), "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(command, check=False, env={**os.environ, **path})


def main() -> int:
    """Run the command; 1 where something is not right."""
    options = parse()
    places = environments.places(options.env)
    if options.command == "setup":
        environments.setup([], places)
        return 0
    if options.command == "torch":
        python = places["torch"] / "bin/python"
        return bool(table.run(python, options.models, options.json, options.timeout, options.again))
    if options.command in (None, "export"):
        export(options, places)
    names = campaign.models(options.folder, options.models)
    if options.command == "list":
        print("\n".join(names))
    if options.command not in (None, "run"):
        return 0
    if not names:  # and no file of results: the newest one is what the page shows
        print(f"no model in {options.folder} matches; tools/zoo export makes them, tools/zoo list names them")
        return 1
    return bool(campaign.run(options.folder, names, options.targets.split(","), options.forms.split(","), options))


if __name__ == "__main__":
    sys.exit(main())
