from .auth import check_token_known as check_token_known
from .config import DashboardConfig as DashboardConfig
from .launcher import ListenAddress as ListenAddress
from .launcher import check_dashboard_extra as check_dashboard_extra
from .launcher import run_dashboard as run_dashboard
