"""The public API and the command line compute what is stored beside this file (see `make.py`)."""

import pytest
from golden_cases import CASES, compute
from make import FOLDER, SUFFIX, difference


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_golden_run_is_equal(name):
    changed = difference(name, compute(name))
    if changed:
        command = f"python tests/golden/make.py {name}"
        pytest.fail(
            f"{name} has changed; `{command}` would write:\n{changed[:4000]}", pytrace=False
        )


def test_every_golden_file_belongs_to_a_case():
    assert {path.stem for path in FOLDER.glob(f"*{SUFFIX}")} == set(CASES)
