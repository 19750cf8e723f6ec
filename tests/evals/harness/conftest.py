"""The tests read local files alone, and leave nothing in the user's cache."""

from __future__ import annotations

import pathlib
import socket

import pytest


@pytest.fixture(autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets  # the default installation has none, and leaves these tests out

    def refuse(self: socket.socket, address: object) -> None:
        raise AssertionError(f'a connection to {address} was tried')

    cache = tmp_path_factory.mktemp('datasets')
    monkeypatch.setattr(datasets.config, 'HF_DATASETS_CACHE', pathlib.Path(cache))
    monkeypatch.setattr(socket.socket, 'connect', refuse)
