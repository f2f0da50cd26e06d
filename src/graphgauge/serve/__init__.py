"""Serve: explanations of one model over HTTP, each in the audit log before it is sent (extra
``serve``).
"""

from graphgauge.serve.app import create_app
from graphgauge.serve.running import run_service
from graphgauge.serve.service import Service
from graphgauge.serve.settings import Settings

__all__ = ["Service", "Settings", "create_app", "run_service"]
