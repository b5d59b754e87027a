"""nginx in its own process, serving the pages of a site."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from crawling_site import Site, addresses

_CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    default_type text/html;
    types {{ text/html html htm; text/plain txt; }}
    charset utf-8;
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout 600;
    keepalive_requests 1000000;
    open_file_cache max=50000 inactive=600s;
    open_file_cache_valid 600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
{listens}
        root {pages}/$server_addr;
    }}
}}
"""


@contextlib.contextmanager
def served(site: Site, pinned: Sequence[str] = ()) -> Iterator[None]:
    """Serve the site inside the block; ``pinned`` is a command prefix that pins it to a core."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        sys.exit("nginx is needed to serve the pages: apt-get install nginx-light, or the like")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        listens = "\n".join(
            f"        listen {address}:{site.port} backlog=4096;" for address in addresses()
        )
        configuration = folder / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(folder=folder, listens=listens, pages=site.folder.absolute())
        )
        command = [*pinned, nginx, "-e", str(folder / "error.log"), "-c", str(configuration)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _wait_for(site, process)
            yield
        finally:
            process.terminate()
            process.communicate()


def _wait_for(site: Site, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError):
            socket.create_connection((addresses()[-1], site.port), 1).close()
            return
        time.sleep(0.05)
    process.kill()
    errors = process.communicate()[1].decode(errors="replace")
    sys.exit(f"nginx does not serve on {addresses()[-1]}:{site.port}: {errors.strip()}")
