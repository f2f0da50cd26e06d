"""The golden run: what the public API and the command line compute on small cases, stored as text.

    python tests/golden/make.py                         # write every file again
    python tests/golden/make.py tables own_metrics      # write these only
    python tests/golden/make.py --check                 # compare, and print what differs

`test_golden.py` computes the same and compares it with the files. A line that moves here moves a
number or a text that somebody may have published: that is a decision, and stands in the changelog.

Floats are written to the last bit. The files were made on Linux, x86-64, with torch in one thread.
Another processor, or another build of torch or of its math library, may round sums and exponentials
differently; then last bits of scores and outputs move, and whatever follows from them. Neither
Python's hash seed nor the number of threads changes a line.
"""

import argparse
import difflib
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
SUFFIX = ".txt"


def path_of(name: str) -> Path:
    """The file of a case."""
    return FOLDER / f"{name}{SUFFIX}"


def difference(name: str, text: str) -> str:
    """How a text differs from what is stored; '' where it does not."""
    stored = path_of(name).read_text(encoding="utf-8") if path_of(name).exists() else ""
    lines = difflib.unified_diff(
        stored.splitlines(), text.splitlines(), "stored", "computed", lineterm="", n=0
    )
    return "\n".join(lines)


def main() -> int:
    """Write or compare."""
    sys.path.insert(0, str(FOLDER))
    os.environ["GRAPHGAUGE_CACHE"] = tempfile.mkdtemp()
    from golden_cases import CASES, compute

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}; all by default"
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    differing = 0
    for name in chosen.cases or CASES:
        start = time.perf_counter()
        text = compute(name)
        found = difference(name, text)
        differing += bool(found)
        seconds, answer = time.perf_counter() - start, "differs" if found else "equal"
        print(f"{name}: {seconds:.1f} s, {len(text.splitlines())} lines, {answer}")
        if chosen.check:
            print(found[:4000], end="\n" if found else "")
        else:
            path_of(name).write_text(text, encoding="utf-8")
    return int(chosen.check and differing > 0)


if __name__ == "__main__":
    sys.exit(main())
