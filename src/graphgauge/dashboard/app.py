"""What `streamlit run` runs: the token, the choice of a page, then the page. Its one argument is
the JSON of `DashboardConfig`.
"""

import sys
from collections.abc import Callable

import streamlit as st

from graphgauge.core import FAIL
from graphgauge.dashboard.auth import is_authorised
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.explanations import show_explanations
from graphgauge.dashboard.monitoring import show_monitoring
from graphgauge.dashboard.runs import show_runs
from graphgauge.dashboard.what_if import show_what_if
from graphgauge.dashboard.widgets import show_errors, show_notice

_PAGES: dict[str, Callable[[DashboardConfig], None]] = {
    "Runs": show_runs,
    "What if": show_what_if,
    "Explanations": show_explanations,
    "Monitoring": show_monitoring,
}


def main() -> None:
    """Show the chosen page."""
    st.set_page_config(page_title="graphgauge", layout="wide", initial_sidebar_state=230)
    if not is_authorised(st.query_params.get("token"), st.context.headers.get("Host")):
        show_notice(
            FAIL,
            "This dashboard is private",
            "Open it by the whole address that `graphgauge dashboard` printed.",
        )
        return
    if "run" in st.session_state:
        # stays chosen on pages that do not ask for it
        st.session_state["run"] = st.session_state["run"]
    page = str(st.sidebar.radio("Page", list(_PAGES)))
    with show_errors():
        _PAGES[page](DashboardConfig.from_json(sys.argv[1]))


if __name__ == "__main__":
    main()
