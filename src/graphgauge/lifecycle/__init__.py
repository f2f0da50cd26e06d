"""Lifecycle: a model of one's own from first look to production; it begins with the project file."""

from graphgauge.lifecycle.assessment import Assessment, assess
from graphgauge.lifecycle.form import Form
from graphgauge.lifecycle.project import Project
from graphgauge.lifecycle.single import Single, explain_one

__all__ = ["Assessment", "Form", "Project", "Single", "assess", "explain_one"]
