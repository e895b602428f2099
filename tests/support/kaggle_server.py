"""A server of this machine that speaks the protocol of Kaggle's models, as kagglehub's client does.

A call is POST /api/v1/SERVICE/METHOD with JSON. A download is answered by a redirection to storage, which says the
file's MD5 and gives parts of it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

SERVICE = "/api/v1/models.ModelApiService/"
TOKEN = "a-token-of-the-test"  # noqa: S105


@dataclass
class Kaggle:
    """What the server has, and what it was asked.

    models: files by handle. gated: handles that only the account with TOKEN gets, and `refused` nobody. failures: how
    many of the next downloads fail with HTTP 503. corrupt: whether what storage sends is not what it says.
    """

    models: Mapping[str, Mapping[str, bytes]]
    gated: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    failures: int = 0
    corrupt: bool = False
    asked: list[str] = field(default_factory=list)
    port: int = 0


@contextmanager
def serving(kaggle: Kaggle) -> Iterator[Kaggle]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Quiet."""

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method = self.path.removeprefix(SERVICE)
            owner, model, variation = (request[f"{part}Slug"] for part in ("owner", "model", "instance"))
            handle = f"{owner}/{model}/tfLite/{variation}/{request['versionNumber']}"
            kaggle.asked.append(f"{method} {handle} {request.get('path') or ''}".strip())
            assert request["framework"].upper().replace("_", "").endswith("TFLITE")
            files = kaggle.models.get(handle)
            if handle in kaggle.refused or (
                handle in kaggle.gated and TOKEN not in self.headers.get("Authorization", "")
            ):
                self._json(403, {"code": 403, "message": "Permission 'modelInstanceVersions.get' was denied"})
            elif files is None or request.get("path") not in (None, "", *files):
                self._json(404, {"code": 404, "message": "Not found"})
            elif method == "ListModelInstanceVersionFiles":
                size = request["pageSize"]
                more = "more" if len(files) > size else ""
                self._json(200, {"files": [{"name": n} for n in list(files)[:size]], "nextPageToken": more})
            elif kaggle.failures > 0:
                kaggle.failures -= 1
                self._json(503, {"code": 503, "message": "Busy"})
            else:
                self.send_response(302)
                self.send_header("Location", f"http://127.0.0.1:{kaggle.port}/{quote(handle)}:{request.get('path')}")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def do_GET(self) -> None:
            handle, _, name = unquote(self.path[1:]).partition(":")
            files = kaggle.models[handle]
            data = files[name] if name in files else _archive(files)
            start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
            md5 = base64.b64encode(hashlib.md5(data).digest()).decode()  # noqa: S324
            self.send_response(206 if start else 200)
            self.send_header("x-goog-hash", f"crc32c=AAAAAA==,md5={md5}")
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(bytes(len(data)) if kaggle.corrupt else data[start:])

        def _json(self, status: int, document: Mapping[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kaggle.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kaggle
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _archive(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
