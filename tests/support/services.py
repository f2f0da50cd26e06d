"""Services for tests: tiny models, a real server on a free port, and requests down to the byte."""

import http.client
import json
import socket
import threading
from contextlib import contextmanager

import torch
import uvicorn
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import graphgauge as gg
from graphgauge.serve import Service, Settings
from graphgauge.serve.server import _uvicorn_config

TOKEN = "a-token-for-tests-only"


def tiny_model(kind=gg.NodeClassificationModel, nodes=30, seed=0, **wrapping):
    """A random graph with four features and a GCN with its first weights."""
    draw = torch.Generator().manual_seed(seed)
    ends = torch.randint(nodes, (2, 3 * nodes), generator=draw)
    data = Data(
        x=torch.randn(nodes, 4, generator=draw), edge_index=torch.cat([ends, ends.flip(0)], 1)
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = GCN(4, 8, 2, 2)
    return kind(net, data, **wrapping)


def made_service(folder, explainers=None, model=None, **changes):
    """A service with a known token; ``changes`` are settings, or options of the service."""
    options = {
        name: changes.pop(name) for name in ("names", "quality", "fallback") if name in changes
    }
    settings = Settings(**{"token": TOKEN, "port": 0, "budget_ms": 60_000, **changes})
    return Service(
        model or tiny_model(),
        explainers or gg.InputXGradient(),
        folder / "audit.sqlite",
        settings=settings,
        **options,
    )


@contextmanager
def serving(service):
    """The port of a server for the service; everything is stopped afterwards."""
    server, listening = (
        uvicorn.Server(_uvicorn_config(service)),
        socket.create_server(("127.0.0.1", 0)),
    )
    service.start()
    service.wait_until_warm()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def call(port, method="GET", path="/health", body=None, **headers):
    """Status, headers and body of one request, with the token unless ``Authorization`` is given
    (None: without).
    """
    own = {
        "Authorization": f"Bearer {TOKEN}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.request(
        method, path, body, {name: value for name, value in own.items() if value is not None}
    )
    found = link.getresponse()
    content = found.read()
    link.close()
    return found.status, dict(found.getheaders()), content


def ask(port, **question):
    """The answer to a question that must be answered."""
    status, _, body = call(
        port, "POST", "/explain", json.dumps(question), Content_Type="application/json"
    )
    assert status == 200, body
    return json.loads(body)


def raw(port, text):
    """The status of what is sent byte for byte; None if the connection is closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        link.sendall(text)
        first = link.makefile("rb").readline()
    return int(first.split()[1]) if first else None
