"""Dashboard: runs, thresholds, single explanations and monitoring in the browser (extra
`dashboard`); Streamlit comes late.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
