"""Sends one order. Imports little, and only from the standard library, to start quickly."""
import os
import socket
import sys


def control(path: str, words: list[str]) -> int:
    """Sends an order and prints its answer. Returns the exit code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
            connection.sendall((' '.join(words) + '\n').encode())
            status, _, text = _everything(connection).partition('\n')
        except OSError as error:
            print(f'peripherals: no answer at {path}: {error}', file=sys.stderr)
            return os.EX_UNAVAILABLE
    if status == 'ok':
        sys.stdout.write(text)
        return os.EX_OK
    print(f"peripherals: {status.removeprefix('error ') or 'no answer'}", file=sys.stderr)
    return os.EX_DATAERR


def _everything(connection: socket.socket) -> str:
    chunks = []
    while chunk := connection.recv(65536):
        chunks.append(chunk)
    return b''.join(chunks).decode()
