"""Headless Chromium of this machine, driven by its DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome')
# Becomes Chromium, which reads from 3 and writes to 4.
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
TIMEOUT = 60  # seconds for one answer


def find() -> str | None:
    """The program, which `NOPE_CHROMIUM` may name; None where there is none."""
    named = os.environ.get('NOPE_CHROMIUM')
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One tab. events: what Chromium told without being asked."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest = write, read, b''
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask('Target.createTarget', url='about:blank')['targetId']
        self._session = self.ask('Target.attachToTarget', targetId=target, flatten=True)[
            'sessionId'
        ]
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.ask(f'{domain}.enable')

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {'id': number, 'method': method, 'params': parameters}
        if self._session is not None:
            message['sessionId'] = self._session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while (answer := self._next()).get('id') != number:
            self.events.append(answer)
        if 'error' in answer:
            raise RuntimeError(f'{method}: {answer["error"]}')
        return answer['result']

    def open(
        self, page: pathlib.Path, width: int, scheme: str = 'light', media: str = 'screen'
    ) -> None:
        """Shows a file at `width` CSS pixels, in a colour scheme 'light' or 'dark', as on a
        'screen' or in 'print'."""
        size = {'width': width, 'height': 900, 'deviceScaleFactor': 1, 'mobile': False}
        self.ask('Emulation.setDeviceMetricsOverride', **size)
        feature = {'name': 'prefers-color-scheme', 'value': scheme}
        self.ask('Emulation.setEmulatedMedia', media=media, features=[feature])
        self.events.clear()
        self.ask('Page.navigate', url=page.absolute().as_uri())
        until = time.monotonic() + TIMEOUT
        while self.value('document.readyState') != 'complete':
            if time.monotonic() > until:
                raise TimeoutError(f'{page} is not loaded after {TIMEOUT} s')
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """What JavaScript makes of an expression; RuntimeError for what it throws."""
        found = self.ask('Runtime.evaluate', expression=expression, returnByValue=True)
        if 'exceptionDetails' in found:
            raise RuntimeError(str(found['exceptionDetails']))
        return found['result'].get('value')

    def press(self, key: str, text: str = '') -> None:
        """A key as DOM events name it; text: what it types."""
        for kind in ('keyDown', 'keyUp'):
            typed = {'text': text} if text and kind == 'keyDown' else {}
            code = {'Enter': 13, 'Tab': 9}.get(key, 0)
            self.ask(
                'Input.dispatchKeyEvent',
                **{'type': kind, 'key': key, 'code': key, 'windowsVirtualKeyCode': code, **typed},
            )

    def screenshot(self, file: pathlib.Path, *, top: int = 0, height: int | None = None) -> None:
        """PNG of the page from `top`; height: None for all of it."""
        size = self.ask('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': top, 'width': size['width'], 'scale': 1}
        clip['height'] = height or size['height'] - top
        made = self.ask('Page.captureScreenshot', captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(made['data']))

    def pdf(self) -> bytes:
        return base64.b64decode(self.ask('Page.printToPDF', printBackground=False)['data'])

    def _next(self) -> dict[str, Any]:
        while b'\0' not in self._rest:
            if not select.select([self._read], [], [], TIMEOUT)[0]:
                raise TimeoutError(f'Chromium has not answered for {TIMEOUT} s')
            data = os.read(self._read, 1 << 16)
            if not data:
                raise RuntimeError('Chromium has ended')
            self._rest += data
        message, _, self._rest = self._rest.partition(b'\0')
        return json.loads(message)


@contextlib.contextmanager
def tab(program: str) -> Iterator[Tab]:
    """A tab of a new Chromium for a `with` block."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    with tempfile.TemporaryDirectory() as profile:
        flags = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe']
        flags += [f'--user-data-dir={profile}', '--no-first-run', '--disable-dev-shm-usage']
        process = subprocess.Popen(
            [sys.executable, '-c', START, str(to_read), str(from_write), program, *flags],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        try:
            yield Tab(to_write, from_read)
        finally:
            os.close(to_write)
            process.terminate()
            process.wait(timeout=TIMEOUT)
            os.close(from_read)
