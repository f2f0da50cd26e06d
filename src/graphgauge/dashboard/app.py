"""What `streamlit run` runs: the token, the choice of a page, then the page. Its one argument is
the JSON of `Places`.
"""

import sys
from collections.abc import Callable

import streamlit as st

from graphgauge.core.verdicts import FAIL
from graphgauge.dashboard.explanations import show_explanations
from graphgauge.dashboard.invited import is_invited
from graphgauge.dashboard.monitoring import show_monitoring
from graphgauge.dashboard.places import Places
from graphgauge.dashboard.runs import show_runs
from graphgauge.dashboard.showing import notice, told
from graphgauge.dashboard.what_if import show_what_if

PAGES: dict[str, Callable[[Places], None]] = {
    "Runs": show_runs,
    "What if": show_what_if,
    "Explanations": show_explanations,
    "Monitoring": show_monitoring,
}


def main() -> None:
    """Show the chosen page."""
    st.set_page_config(page_title="graphgauge", layout="wide", initial_sidebar_state=230)
    if not is_invited(st.query_params.get("token"), st.context.headers.get("Host")):
        notice(
            FAIL,
            "This dashboard is private",
            "Open it by the whole address that `graphgauge dashboard` printed.",
        )
        return
    if "run" in st.session_state:
        st.session_state["run"] = st.session_state[
            "run"
        ]  # stays chosen on pages that do not ask for it
    page = str(st.sidebar.radio("Page", list(PAGES)))
    with told():
        PAGES[page](Places.read(sys.argv[1]))


if __name__ == "__main__":
    main()
