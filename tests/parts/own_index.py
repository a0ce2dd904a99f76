"""A package index on this machine: https with a certificate of its own, which no program trusts that is not given it."""

from __future__ import annotations

import contextlib
import http.server
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from parts.network import serving


@dataclass(slots=True)
class OwnIndex:
    """The files in these folders; `status` is what it answers instead, such as 403."""

    folders: tuple[Path, ...]
    certificate: Path
    address: str = ""
    status: int | None = None
    asked: list[str] = field(default_factory=list)

    def find(self, path: str) -> bytes | None:
        """The page of a package, or a file."""
        files = {file.name: file for folder in self.folders for file in folder.iterdir() if file.is_file()}
        kind, _, name = path.strip("/").partition("/")
        if kind == "files":
            return files[name].read_bytes() if name in files else None
        names = [file for file in files if file.split("-")[0].replace("_", "-").lower() == name]
        return "".join(f'<a href="/files/{file}">{file}</a>\n' for file in names).encode() if names else None


@contextlib.contextmanager
def own_index(folder: Path, *folders: Path) -> Iterator[OwnIndex]:
    """The index as long as it runs; its certificates are written to `folder`."""
    folder.mkdir(exist_ok=True)
    ca, key, request, certificate = (folder / name for name in ("ca.pem", "key.pem", "request.pem", "server.pem"))
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    authority = ("-x509", "-keyout", str(folder / "ca.key"), "-out", str(ca), "-days", "30", "-subj", "/CN=a site")
    server = ("-keyout", str(key), "-out", str(request), "-subj", "/CN=127.0.0.1")
    signed = ("-CA", str(ca), "-CAkey", str(folder / "ca.key"), "-CAcreateserial", "-extfile", str(folder / "san"))
    for argv in (
        (*new, *authority),
        (*new, *server),
        ("openssl", "x509", "-req", "-in", str(request), *signed, "-days", "30", "-out", str(certificate)),
    ):
        subprocess.run(argv, check=True, capture_output=True)
    index = OwnIndex(folders=folders, certificate=ca)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            content = index.find(self.path) if index.status is None else b"no"
            self.send_response(index.status or (200 if content is not None else 404))
            self.send_header("Content-Type", "text/html" if "/simple" in self.path else "application/octet-stream")
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content or b"")

        do_HEAD = do_GET  # noqa: N815

    with serving(Handler, certificate, key) as port:
        index.address = f"https://127.0.0.1:{port}/simple"
        yield index
