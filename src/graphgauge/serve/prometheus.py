"""What Prometheus reads: requests, times, batches, fallbacks, the queue and the audit log."""

from graphgauge.core import JsonObject, MissingExtra

_SECONDS_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)


class PrometheusMetrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError as error:
            raise MissingExtra(
                'the service needs prometheus-client: pip install "graphgauge[serve]".'
            ) from error
        self.registry = prometheus.CollectorRegistry()
        self.render = prometheus.generate_latest
        self.content_type = prometheus.CONTENT_TYPE_LATEST
        own: JsonObject = {"registry": self.registry}
        name = "graphgauge_{}".format
        self.requests = prometheus.Counter(
            name("requests"), "Requests by route and status.", ["route", "status"], **own
        )
        self.seconds = prometheus.Histogram(
            name("answer_seconds"), "From arrival to answer.", buckets=_SECONDS_BUCKETS, **own
        )
        self.batch = prometheus.Histogram(
            name("batch_size"), "Questions in one call.", buckets=_SIZE_BUCKETS, **own
        )
        self.fallbacks = prometheus.Counter(
            name("fallbacks"), "Answers by the fallback.", ["reason"], **own
        )
        self.failures = prometheus.Counter(
            name("failures"), "Questions without an answer.", ["reason"], **own
        )
        self.waiting = prometheus.Gauge(name("waiting"), "Questions that wait.", **own)
        self.entries = prometheus.Gauge(name("audit_entries"), "Entries of the audit log.", **own)
        prometheus.ProcessCollector(**own)

    def text(self) -> bytes:
        """The exposition."""
        return bytes(self.render(self.registry))
