"""Lifecycle: a model of one's own from first look to production: project file, validation,
decision, gate, tracking, documents.
"""

from graphgauge.lifecycle.assessment import Assessment, assess
from graphgauge.lifecycle.decision import Decision, Problem
from graphgauge.lifecycle.documents import Owner, write_documents
from graphgauge.lifecycle.form import Form
from graphgauge.lifecycle.gate import annotations, junit
from graphgauge.lifecycle.project import Project
from graphgauge.lifecycle.single import Single, explain_one
from graphgauge.lifecycle.tracking import Tracker
from graphgauge.lifecycle.validation import Terms, Validation, validate
from graphgauge.lifecycle.watching import Watched, shown_examples, watched

__all__ = [
    "Assessment",
    "Decision",
    "Form",
    "Owner",
    "Problem",
    "Project",
    "Single",
    "Terms",
    "Tracker",
    "Validation",
    "Watched",
    "annotations",
    "assess",
    "explain_one",
    "junit",
    "shown_examples",
    "validate",
    "watched",
    "write_documents",
]
