"""Digests of results and files, which show that files belong together."""

import json
from itertools import chain
from pathlib import Path

from graphgauge.core import blake2b_hex, sha256_of_file
from graphgauge.evaluation import Results


def digest_of_results(results: Results) -> str:
    """Compute a digest of rows and settings; it is the same before saving and after loading."""
    rows = (json.dumps(row.record(), sort_keys=True) for row in results.rows)
    return blake2b_hex(chain([results.settings.digest], rows), size=16)


def digest_of_file(path: Path) -> str:
    """Compute the sha256 of a file."""
    return sha256_of_file(path)
