"""Narrative: sentences that say what an explanation means, per language and audience."""

from graphgauge.narrative.language import find_language
from graphgauge.narrative.names import Names
from graphgauge.narrative.telling import AUDIENCES, explanation_facts, textual_explanation

__all__ = ["AUDIENCES", "Names", "explanation_facts", "find_language", "textual_explanation"]
