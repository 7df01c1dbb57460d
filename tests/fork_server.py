"""`python -m nmt ...` many times without loading torch as often: a server that has it loaded forks for each command.

As a script, `python -m tests.fork_server SOCKET`, it serves until it is killed; `write_client` makes the `python` that
asks it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

CLIENT = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:3] != ["-m", "nmt"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps({{"arguments": sys.argv[3:], "folder": os.getcwd()}})
    socket.send_fds(server, [request.encode()], [0, 1, 2])
    sys.exit(int(server.recv(16) or b"1"))
"""


def write_client(path: Path, address: Path) -> None:
    """A program that takes the place of python: it passes `-m nmt` on to the server, all else to python itself."""
    path.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    path.chmod(0o755)


def serve(address: str) -> None:
    """Answer each connection in a process of its own, which has the caller's folder and standard streams."""
    import nmt.api
    import nmt.attention_file
    import nmt.symmetrise  # noqa: F401
    from nmt.__main__ import run

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                answer(connection, run)


def answer(connection: socket.socket, run) -> None:
    """Run one command and send its exit code."""
    message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    request = json.loads(message)
    os.chdir(request["folder"])
    sys.argv[0] = "nmt"
    code = 1
    try:
        code = run(request["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as leave:
        code = leave.code
    finally:
        connection.send(str(code).encode())
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
