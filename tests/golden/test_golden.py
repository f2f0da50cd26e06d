"""The public API and the command line compute what is stored beside this file (see `make.py`)."""

import pytest
from golden_cases import CASES, compute
from make import (
    FOLDER,
    PLATFORM,
    SUFFIX,
    difference,
    lines_beyond_rounding,
    path_of,
    this_platform,
)

IS_SAME_PLATFORM = this_platform() == PLATFORM.read_text(encoding="utf-8").strip()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_golden_run_is_equal(name):
    computed = compute(name)
    changed = difference(name, computed)
    if changed and not IS_SAME_PLATFORM:
        # where sums are rounded differently, a tie may be broken differently: one line in a hundred
        stored = path_of(name).read_text(encoding="utf-8")
        far = lines_beyond_rounding(stored, computed)
        changed = "\n".join(far) if len(far) > len(stored.splitlines()) / 100 else ""
    if changed:
        command = f"python tests/golden/make.py {name}"
        pytest.fail(
            f"{name} has changed; `{command}` would write:\n{changed[:4000]}", pytrace=False
        )


def test_every_golden_file_belongs_to_a_case():
    assert {path.stem for path in FOLDER.glob(f"*{SUFFIX}")} == set(CASES)


@pytest.mark.parametrize(
    ("stored", "computed", "is_far"),
    [
        ("edge_ec: ok 7.0", "edge_ec: ok 7.0", False),
        ("score 0.12345678", "score 0.12345679", False),
        ("score 0.8411368727684021", "score 0.841136932373046", False),
        ("score 0.8411368727684021", "score 0.8421368727684021", True),
        ("score 0.1234", "score 0.1244", True),
        ("edge_ec: ok 7.0", "edge_ec: ok 8.0", True),
        ("trials=[30]", "trials=[44]", True),
        ("digest=68716b532fbbfa77", "digest=0123456789abcdef", False),
        ("ok 7.0", "failed 7.0", True),
        ("1.0\n2.0", "1.0", True),
    ],
)
def test_lines_are_compared_up_to_rounding(stored, computed, is_far):
    assert bool(lines_beyond_rounding(stored, computed)) is is_far
