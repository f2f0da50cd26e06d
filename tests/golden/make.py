"""The golden run: what the public API and the command line compute on small cases, stored as text.

    python tests/golden/make.py                         # write every file again
    python tests/golden/make.py tables own_metrics      # write these only
    python tests/golden/make.py --check                 # compare, and print what differs

`test_golden.py` computes the same and compares it with the files. A line that moves here moves a
number or a text that somebody may have published: that is a decision, and stands in the changelog.

Floats are written to the last bit. The files were made on Linux, x86-64, with torch in one thread.
Another processor, or another build of torch or of its math library, may round sums and exponentials
differently; then last bits of scores and outputs move, and whatever follows from them. `platform`
says where the files were made: there they are compared to the last bit, elsewhere up to rounding
(`lines_beyond_rounding`). Neither Python's hash seed nor the number of threads changes a line.
"""

import argparse
import difflib
import math
import os
import platform
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
SUFFIX = ".txt"
PLATFORM = FOLDER / "platform"
ROUNDING = 1e-4  #: relative and absolute; float32 has seven digits, and sums lose some of them


def path_of(name: str) -> Path:
    """The file of a case."""
    return FOLDER / f"{name}{SUFFIX}"


def this_platform() -> str:
    """What rounding depends on: the system, the processor's kind, and the builds of libraries."""
    import numpy
    import torch

    cpu = Path("/proc/cpuinfo")
    vendor = re.search(r"vendor_id\s*: (\S+)", cpu.read_text() if cpu.exists() else "")
    return " ".join(
        [
            platform.system(),
            platform.machine(),
            vendor[1] if vendor else "",
            torch.backends.cpu.get_cpu_capability(),
            f"torch-{torch.__version__}",
            f"numpy-{numpy.__version__}",
        ]
    )


def lines_beyond_rounding(stored: str, computed: str) -> list[str]:
    """Computed lines whose words differ from those stored, or whose numbers differ by more than
    rounding. Digests, which have no size, are not compared.
    """
    ours, theirs = computed.splitlines(), stored.splitlines()
    if len(ours) != len(theirs):
        return ours
    return [mine for mine, other in zip(ours, theirs, strict=True) if not is_close(mine, other)]


def is_close(line: str, other: str) -> bool:
    """Whether two lines say the same up to rounding."""
    number = r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+"
    digest = r"(?<![\w.])[0-9a-f]{16,}\b"  # not the digits behind a point
    words, more_words = (re.sub(f"{digest}|{number}", "", text) for text in (line, other))
    numbers, more = (
        [float(found) for found in re.findall(number, re.sub(digest, "", text))]
        for text in (line, other)
    )
    return (
        words == more_words
        and len(numbers) == len(more)
        and all(
            math.isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING)
            for a, b in zip(numbers, more, strict=True)
        )
    )


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
    if not chosen.check:
        PLATFORM.write_text(this_platform() + "\n", encoding="utf-8")
    return int(chosen.check and differing > 0)


if __name__ == "__main__":
    sys.exit(main())
