"""A model hub on the loopback interface, with the few answers that finding and fetching a model needs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves models from memory and remembers which files were asked for.

    Args:
        models: name -> file name -> content. A model without files is gated.
    """

    def __init__(self, models: dict[str, dict[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.models = models
        self.fetched: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/")
        if path.startswith("api/models/"):
            self._answer_api(path.removeprefix("api/models/"))
            return
        model, _, rest = path.partition("/resolve/")
        revision, _, file = rest.partition("/")
        content = self.server.models.get(model, {}).get(file)
        if content is None or revision != COMMIT:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        if self.command == "GET":
            self.server.fetched.append(file)
        self._send(200, content, {"ETag": f'"{len(content)}-{file}"', "X-Repo-Commit": COMMIT})

    def _answer_api(self, path: str) -> None:
        model, _, rest = path.partition("/revision/")
        model, _, tree = model.partition("/tree/")
        files = self.server.models.get(model)
        if files is None:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif not files:
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
        elif (rest or tree or "main") not in ("main", COMMIT):
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        elif tree:
            entries = [
                {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                for name, content in files.items()
            ]
            self._send(200, json.dumps(entries).encode(), {})
        else:
            siblings = [{"rfilename": name} for name in files]
            self._send(200, json.dumps({"id": model, "sha": COMMIT, "siblings": siblings}).encode(), {})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@contextmanager
def serving(models: dict[str, dict[str, bytes]]) -> Iterator[Hub]:
    """Run a hub until the block is left."""
    with Hub(models) as hub:
        thread = Thread(target=hub.serve_forever, name="hub")
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
