"""Lifecycle: a model of one's own from first look to production; it begins with the project file."""

from graphgauge.lifecycle.form import Form
from graphgauge.lifecycle.project import Project

__all__ = ["Form", "Project"]
