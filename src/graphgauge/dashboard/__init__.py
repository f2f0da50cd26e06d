"""Dashboard: runs, thresholds, single explanations and monitoring in the browser (extra
`dashboard`); Streamlit comes late.
"""

from graphgauge.dashboard.places import Places
from graphgauge.dashboard.running import check_extra, run_dashboard

__all__ = ["Places", "check_extra", "run_dashboard"]
