"""The HTTP side of the service: routes, OpenAPI, start and stop. FastAPI is imported when an app is
made.

    POST /explain        a question in, an answer out
    GET  /health         the process answers (no token)
    GET  /ready          questions are answered now (no token); 503 while starting, stopping, or
                         when the log cannot be written
    GET  /metrics        for Prometheus
    GET  /openapi.json   this, for programs

Nothing else: no pages, no files, no other methods.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from graphgauge import __version__
from graphgauge.core import JsonObject, MissingExtra
from graphgauge.models import BaseModel
from graphgauge.serve.batch_explainer import Explainers
from graphgauge.serve.requests import RequestRefused
from graphgauge.serve.responses import Answer, Problem, State
from graphgauge.serve.security import (
    OPEN_PATHS,
    SecurityMiddleware,
    TokenBucket,
    check_body_headers,
    read_body,
    refusal_response,
)
from graphgauge.serve.service import Service
from graphgauge.serve.settings import Settings
from graphgauge.store import LogPath

if TYPE_CHECKING:
    from fastapi import FastAPI

_STATUS_DESCRIPTIONS = {
    400: "no JSON",
    401: "no token, or a wrong one",
    403: "from a web page",
    408: "the body did not arrive",
    413: "too long",
    415: "no JSON, by its headers",
    421: "for another host",
    422: "no question that can be answered",
    429: "too many questions",
    500: "no explainer could answer",
    503: "starting, stopping, busy, or the audit log cannot be written",
}
_COMMON_STATUSES = (401, 403, 421)
_API_DESCRIPTION = (
    "Explains predictions of one graph neural network. Every answer is in an append-only audit "
    "log before it is sent."
)


def create_app(
    model: BaseModel,
    explainers: Explainers,
    audit: LogPath,
    *,
    settings: Settings | None = None,
    **options: Any,
) -> "FastAPI":
    """Build the service as an ASGI app. It starts and stops with the app.

    Args:
        model: The wrapped network whose predictions are explained.
        explainers: One explainer, several, or {label: explainer}. Callers may ask for any of them;
            the first answers those who ask for none.
        audit: The file of the audit log. It is made if it does not exist, else continued.
        settings: Limits, times and token; by default those of `Settings()`, with a random token.
        **options: Other parameters of `Service`, such as ``names``, ``quality`` and ``fallback``.

    Raises:
        MissingExtra: The packages of the extra "serve" are not installed.
    """
    check_serve_extra()
    return build_app(Service(model, explainers, audit, settings=settings, **options))


def check_serve_extra() -> None:
    """Refuse to go on without the packages of the extra, before any work is done."""
    try:
        import fastapi
        import prometheus_client
        import uvicorn
    except ImportError as error:
        raise MissingExtra(
            f'the service needs more packages ({error}): pip install "graphgauge[serve]".'
        ) from error
    del fastapi, prometheus_client, uvicorn


def build_app(service: Service) -> "FastAPI":
    """The routes of a service; it is started with the app unless it runs already, and stopped with
    it.
    """
    from fastapi import FastAPI

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if service.thread is None:
            await asyncio.to_thread(service.start)
        yield
        await asyncio.to_thread(service.stop)

    app = FastAPI(
        title="graphgauge",
        version=__version__,
        description=_API_DESCRIPTION,
        docs_url=None,  # those pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    _add_routes(app, service)
    _add_error_handlers(app)
    _document_token(app)

    def counted(route: str, status: int) -> None:
        service.prometheus.requests.labels(route, str(status)).inc()

    app.add_middleware(SecurityMiddleware, settings=service.settings, counted=counted)
    return app


def _add_routes(app: "FastAPI", service: Service) -> None:
    """What can be asked."""
    from fastapi import Request, Response

    settings, bucket = service.settings, TokenBucket(service.settings.rate, service.settings.burst)
    body = {"required": True, "content": {"application/json": {"schema": service.reader.schema()}}}

    @app.post(
        "/explain",
        responses=_response_docs(Answer, 400, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra={"requestBody": body},
    )
    async def explain(request: Request) -> Response:
        """Explain one prediction."""
        bucket.take()
        check_body_headers(request.headers, settings.max_body)
        question = service.reader.read(
            await read_body(request.stream(), settings.max_body, settings.body_ms / 1000)
        )
        answer = await asyncio.wrap_future(service.ask(question))
        return _json_response(answer)

    @app.get("/health", responses=_response_docs(State))
    async def health() -> Response:
        """Whether the process answers."""
        return _json_response({"status": "ok"})

    @app.get("/ready", responses=_response_docs(State, 503))
    async def ready() -> Response:
        """Whether questions are answered now."""
        if not service.is_ready:
            raise RequestRefused(
                503,
                "not_ready",
                "the service is starting or stopping, or the audit log cannot be written.",
                1,
            )
        return _json_response({"status": "ready"})

    @app.get("/metrics", response_class=Response, responses=_response_docs(None))
    async def metrics() -> Response:
        """Figures for Prometheus."""
        service.prometheus.waiting.set(service.queue.qsize())
        return Response(service.prometheus.text(), media_type=service.prometheus.content_type)


def _add_error_handlers(app: "FastAPI") -> None:
    """Every refusal has one shape."""
    from fastapi import Request, Response
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    def refused(refusal: RequestRefused, more: Any = None) -> Response:
        body, headers = refusal_response(refusal)
        named = {key.decode(): value.decode() for key, value in headers}
        return Response(body, refusal.status, {**named, **(more or {})})

    @app.exception_handler(RequestRefused)
    async def told(request: Request, error: RequestRefused) -> Response:
        return refused(error)

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> Response:
        code, message = (
            ("bad_method", "not with this method.")
            if error.status_code == 405
            else ("no_route", "there is no such route.")
        )
        return refused(RequestRefused(error.status_code, code, message), error.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return refused(RequestRefused(400, "gone", "the caller went away."))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return refused(
            RequestRefused(
                500, "failed", "the service failed on this request; its own log says why."
            )
        )


def _response_docs(model: Any, *statuses: int) -> dict[int | str, JsonObject]:
    """The responses of a route, for the OpenAPI; without a model it answers with text."""
    problems: dict[int | str, JsonObject] = {
        status: {"model": Problem, "description": _STATUS_DESCRIPTIONS[status]}
        for status in (*_COMMON_STATUSES, *statuses)
    }
    return {200: {"model": model, "description": "the answer"}, **problems}


def _document_token(app: "FastAPI") -> None:
    """Say in the OpenAPI which routes need the token."""
    made = app.openapi

    def with_token() -> JsonObject:
        found = made()
        found.setdefault("components", {})["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"}
        }
        for path, operations in found["paths"].items():
            for operation in operations.values():
                operation["security"] = [] if path in OPEN_PATHS else [{"token": []}]
                operation["responses"] = {
                    code: each
                    for code, each in operation["responses"].items()
                    if is_needed(path, code)
                }
        return found

    def is_needed(path: str, code: str) -> bool:
        return not (code == "401" and path in OPEN_PATHS)

    app.openapi = with_token  # type: ignore[method-assign]


def _json_response(body: Any) -> Any:
    """Plain data as a response."""
    from fastapi import Response

    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), media_type="application/json")
