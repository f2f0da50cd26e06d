"""Lifecycle: validate, decision file, gate, tracking and documents; what happens around a measurement."""

from graphgauge.lifecycle.decision import Decision, Problem
from graphgauge.lifecycle.documents import Owner, write_documents
from graphgauge.lifecycle.gate import annotations, junit
from graphgauge.lifecycle.tracking import Tracker
from graphgauge.lifecycle.validation import Validation, validate

__all__ = ["Decision", "Owner", "Problem", "Tracker", "Validation", "annotations", "junit", "validate", "write_documents"]
