"""Digests are those that stored files already hold."""

import hashlib
import json

import pytest
import torch

from graphgauge.core.digests import (
    blake2b_hex,
    canonical_json,
    digest_of_tensors,
    digest_of_texts,
    sha256_hex,
    sha256_of_file,
)


@pytest.mark.parametrize("content", ["", "é", "\ud7ff", "a" * 5000])
@pytest.mark.parametrize("size", [4, 6, 16])
def test_texts_are_hashed_as_utf_8(content, size):
    assert blake2b_hex(content, size) == blake2b_hex(content.encode(), size)
    assert (
        blake2b_hex(content, size)
        == hashlib.blake2b(content.encode(), digest_size=size).hexdigest()
    )
    assert sha256_hex(content) == hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**20 + 1])
def test_a_file_has_the_digest_of_its_bytes(tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    assert sha256_of_file(path) == sha256_hex(b"x" * size)


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    first, second = {"a": 1, "b": [True, None, 0.1]}, {"b": [True, None, 0.1], "a": 1}
    assert canonical_json(first) == canonical_json(second) == '{"a":1,"b":[true,null,0.1]}'
    assert json.loads(canonical_json({"name": "é"})) == {"name": "é"}


@pytest.mark.parametrize("gap", [float("nan"), float("inf")])
def test_canonical_json_refuses_numbers_that_json_does_not_have(gap):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"value": gap})


def test_digests_of_texts_and_tensors_are_pinned():
    """Stored runs, decisions and the audit log hold such names."""
    assert digest_of_texts(["cora", "x"]) == "d4ed8628"
    tensors = [torch.arange(3), torch.tensor([[0.5, float("nan")]]), torch.zeros(0)]
    assert digest_of_tensors(tensors) == "da3e869d02bf43be"
    assert len(digest_of_tensors(tensors, size=32)) == 64


def test_a_tensor_is_named_by_its_type_shape_and_bits_wherever_it_lies_in_memory():
    plain = torch.arange(6.0).view(2, 3)
    turned = plain.t().contiguous().t()
    assert digest_of_tensors([plain]) == digest_of_tensors([turned])
    assert digest_of_tensors([plain]) == digest_of_tensors([plain.to_sparse()])
    assert digest_of_tensors([plain]) != digest_of_tensors([plain.double()])
    assert digest_of_tensors([plain]) != digest_of_tensors([plain.view(3, 2)])
    assert digest_of_tensors([torch.zeros(1)]) != digest_of_tensors([-torch.zeros(1)])
