# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Export one family of models, in the environment of its framework: started by tools/zoo."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import shutil
import time
import traceback
import warnings
from pathlib import Path

from zoo_models.comparing import first_line

from .families import FAMILIES
from .storing import store


def main() -> None:
    """Write each model of a family into a folder of its own; what fails leaves its reason there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=sorted(FAMILIES))
    parser.add_argument("out", type=Path, help="folder of the models")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names, or patterns of these")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    variants = importlib.import_module(f"zoo_models.export.{FAMILIES[options.family].module}").variants
    for name, make in variants(options.out).items():
        if options.only and not any(fnmatch.fnmatch(name, wanted) for wanted in options.only):
            continue
        folder = options.out / options.family / name
        if (folder / "meta.json").exists() and not options.again:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.perf_counter()
        try:
            facts = store(folder, make(folder))
            state = f"{facts['calls']} calls, {facts['framework_error']:.1e} from the framework"
        except Exception as error:
            state = f"not exported: {first_line(error)}"
            (folder / "failed.txt").write_text(traceback.format_exc())
            (folder / "meta.json").write_text(json.dumps({"failed": first_line(error)}, indent=1) + "\n")
        print(f"{options.family}/{name}: {state} ({time.perf_counter() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
