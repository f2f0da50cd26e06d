"""What proves that files belong together: digests of results and of files."""

import hashlib
import json
from pathlib import Path

from graphgauge.evaluation import Results


def digest_of_results(results: Results) -> str:
    """A name of exactly these rows and settings; the same before saving and after loading."""
    found = hashlib.blake2b(results.settings.digest.encode(), digest_size=16)
    for row in results.rows:
        found.update(json.dumps(row.record(), sort_keys=True).encode())
    return found.hexdigest()


def digest_of_file(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        found = hashlib.sha256()
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()
