"""A wire to Postgres that can be cut on purpose, at a chosen point of a chosen statement.

    with Wire(url) as wire:
        wire.cut_at("copy job_semantic_chunks", Phase.RUNNING)
        wire.cut_at("copy job_semantic_chunks", Phase.ANSWERED, commit=True)   # its transaction's COMMIT
        ...Database(SecretStr(wire.url))...

A proxy on a local TCP port that reads the frontend's messages. It follows no statement of an encrypted connection:
there, only `cut` and `refuse` work. A server that is reached over TCP keeps its name, so that certificates are
still checked against it.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 65536
_TLS_HANDSHAKE = 0x16
_SHORT_STARTUP = 8
"""Length of an SSLRequest or GSSENCRequest: a startup packet follows."""


class Phase(Enum):
    """Where in the life of a statement the wire is cut."""

    BEFORE = auto()
    """The server never hears of it."""
    RUNNING = auto()
    """The server has it, and nobody waits for the answer."""
    ANSWERED = auto()
    """The server is done and its answer gets lost."""


@dataclass(slots=True)
class _Cut:
    needle: bytes
    phase: Phase
    commit: bool
    times: int


class Wire:
    """Runs in threads of its own between `__enter__` and `__exit__`."""

    def __init__(self, conninfo: str) -> None:
        given = conninfo_to_dict(conninfo)
        host = str(given.get("host") or "localhost")
        port = int(given.get("port") or 5432)
        self._unix = str(Path(host) / f".s.PGSQL.{port}") if host.startswith("/") else None
        self._upstream = (str(given.get("hostaddr") or host), port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        own: dict[str, str | int] = {"port": self._listener.getsockname()[1]}
        if self._unix:
            own |= {"host": "127.0.0.1", "sslmode": "disable", "gssencmode": "disable"}
        else:
            own |= {"host": host, "hostaddr": "127.0.0.1"}
        self.url = make_conninfo(conninfo, **own)
        self.statements: list[str] = []
        """First lines, in lower case and without comments, of all statements sent, in order of arrival."""
        self.was_cut = threading.Event()
        """Set whenever a connection is cut; clear it to wait for the next time."""
        self._cuts: list[_Cut] = []
        self._refusing = False
        self._strands: set[_Strand] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, name="wire", daemon=True)

    def cut_at(self, statement: str, phase: Phase, *, commit: bool = False, times: int = 1) -> None:
        """Cuts the next `times` connections that send a statement with these words, in any case of letters.

        `commit`: not at the statement, but at the COMMIT of the transaction it stands in.
        """
        with self._lock:
            self._cuts.append(_Cut(statement.lower().encode(), phase, commit, times))

    def cut(self) -> int:
        """Cuts every connection now; returns how many there were."""
        with self._lock:
            strands = list(self._strands)
        for strand in strands:
            strand.cut()
        return len(strands)

    @contextmanager
    def refuse(self) -> Iterator[None]:
        """Cuts every connection and takes no new one until the block ends."""
        self._refusing = True
        try:
            self.cut()
            yield
        finally:
            self._refusing = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A blocked accept() does not notice that its socket was closed; a visitor wakes it.
        self._refusing = True
        with suppress(OSError), socket.create_connection(self._listener.getsockname()):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            strand = _Strand(self, client, server)
            with self._lock:
                self._strands.add(strand)
            strand.start()

    def _connect(self) -> socket.socket:
        if not self._unix:
            return socket.create_connection(self._upstream)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._unix)
        except OSError:
            server.close()
            raise
        return server

    def _gone(self, strand: _Strand) -> None:
        with self._lock:
            self._strands.discard(strand)

    def _sees(self, statement: bytes, begun: list[_Cut]) -> Phase | None:
        """Notes a statement; the phase in which its connection is to be cut. `begun`: cuts that wait for COMMIT."""
        lines = [line for line in statement.lower().splitlines() if not line.startswith(b"--")]
        words = b"\n".join(lines).strip()
        with self._lock:
            self.statements.append(words.partition(b"\n")[0].decode(errors="replace"))
            if words == b"commit" and begun:
                return begun.pop().phase
            if words.startswith((b"rollback", b"begin")):
                begun.clear()
            for cut in self._cuts:
                if cut.times and cut.needle in words:
                    cut.times -= 1
                    if not cut.commit:
                        return cut.phase
                    begun.append(cut)
        return None


class _Strand:
    """One connection through the wire."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self._wire = wire
        self._client = client
        self._server = server
        self._prepared: dict[bytes, bytes] = {}
        self._begun: list[_Cut] = []
        self._pending: Phase | None = None
        self._lose_answer = False

    def start(self) -> None:
        for target in (self._forth, self._back):
            threading.Thread(target=target, name="wire-strand", daemon=True).start()

    def cut(self) -> None:
        """The client finds the connection broken; the server reads what it was sent, then the end."""
        self._wire._gone(self)
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_WR)
        self._wire.was_cut.set()

    def _back(self) -> None:
        with suppress(OSError):
            while answer := self._server.recv(_PIECE):
                if self._lose_answer:
                    self.cut()
                else:
                    with suppress(OSError):
                        self._client.sendall(answer)
        self._wire._gone(self)
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)
        self._client.close()
        self._server.close()

    def _forth(self) -> None:
        with suppress(OSError):
            if self._start_up():
                while message := self._message():
                    if not self._pass_on(message):
                        return
            else:
                while piece := self._client.recv(_PIECE):
                    self._server.sendall(piece)
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_WR)

    def _start_up(self) -> bool:
        """Passes on the untyped messages before the first typed one; False when what follows is encrypted."""
        while True:
            head = self._exactly(4)
            if not head or head[0] == _TLS_HANDSHAKE:
                self._server.sendall(head)
                return not head
            length = int.from_bytes(head)
            self._server.sendall(head + self._exactly(length - 4))
            if length != _SHORT_STARTUP:
                return True

    def _message(self) -> bytes:
        head = self._exactly(5)
        return head + self._exactly(int.from_bytes(head[1:]) - 4) if head else b""

    def _exactly(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            piece = self._client.recv(length - len(data))
            if not piece:
                return b""
            data += piece
        return bytes(data)

    def _pass_on(self, message: bytes) -> bool:
        """False when the connection was cut."""
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, statement, _ = body.split(b"\0", 2)
            self._prepared[name] = statement
        elif kind in (b"Q", b"B"):
            statement = body[:-1] if kind == b"Q" else self._prepared.get(body.split(b"\0", 2)[1], b"")
            self._pending = self._wire._sees(statement, self._begun)
            if self._pending is Phase.BEFORE:
                self.cut()
                return False
        # The server works off an extended query up to its Sync.
        whole = kind in (b"Q", b"S")
        if whole and self._pending is Phase.ANSWERED:
            self._lose_answer = True
        self._server.sendall(message)
        if whole and self._pending is Phase.RUNNING:
            self.cut()
            return False
        return True
