"""A headless Chromium, driven over WebDriver with the standard library only."""
import base64
import json
import pathlib
import subprocess
import time
import typing
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'


class Browser:
    """A browser window."""

    # Seconds that `wait` waits at most.
    limit = 20

    def __init__(self, width: int, height: int, *, dark: bool = False):
        self._driver = subprocess.Popen(
            ['chromedriver', '--port=0'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = next(line.split()[-1].rstrip('.') for line in self._driver.stdout if 'successfully on port' in line)
        self._server = f'http://127.0.0.1:{port}'
        arguments = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                     f'--window-size={width},{height}', '--lang=en-GB']
        if dark:
            arguments.append('--force-dark-mode')
        wanted = {'browserName': 'chrome', 'goog:chromeOptions': {'args': arguments},
                  'goog:loggingPrefs': {'browser': 'ALL'}}
        answer = self._call('POST', '/session', {'capabilities': {'alwaysMatch': wanted}})
        self._session = f"/session/{answer['sessionId']}"
        # The page gets the whole size, without the borders of a window.
        self.command('Emulation.setDeviceMetricsOverride',
                     {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600})

    def __enter__(self) -> 'Browser':
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call('DELETE', self._session)
        finally:
            self._driver.terminate()
            self._driver.wait()
            self._driver.stdout.close()

    def open(self, url: str) -> None:
        self._call('POST', self._session + '/url', {'url': url})

    def run(self, script: str, *arguments: object) -> typing.Any:
        """Runs JavaScript and returns its result, or that of its promise."""
        body = {'script': script, 'args': list(arguments)}
        return self._call('POST', self._session + '/execute/sync', body)

    def command(self, name: str, parameters: dict) -> typing.Any:
        """Sends a command of the DevTools protocol."""
        return self._call('POST', self._session + '/goog/cdp/execute', {'cmd': name, 'params': parameters})

    def wait(self, script: str, *arguments: object) -> typing.Any:
        """Repeats the script until it returns a true value."""
        end = time.monotonic() + self.limit
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f'no true value in {self.limit} s: {script} {arguments or ""}')
            time.sleep(0.05)
        return value

    def text(self, selector: str) -> str:
        return self.run('return document.querySelector(arguments[0])?.innerText ?? ""', selector)

    def click(self, selector: str) -> None:
        """Clicks an element; a covered one cannot be clicked."""
        self._call('POST', f'{self._session}/element/{self._element(selector)}/click', {})

    def type(self, selector: str, text: str) -> None:
        self._call('POST', f'{self._session}/element/{self._element(selector)}/value', {'text': text})

    def press(self, *keys: str) -> None:
        """Presses keys one after the other in the focused element."""
        actions = [{'type': kind, 'value': key} for key in keys for kind in ('keyDown', 'keyUp')]
        self._call('POST', self._session + '/actions',
                   {'actions': [{'type': 'key', 'id': 'keyboard', 'actions': actions}]})

    def screenshot(self, path: pathlib.Path) -> None:
        path.write_bytes(base64.b64decode(self._call('GET', self._session + '/screenshot')))

    def errors(self) -> list[str]:
        """Returns errors since the last call: exceptions, policy violations, failed requests."""
        entries = self._call('POST', self._session + '/se/log', {'type': 'browser'})
        return [entry['message'] for entry in entries
                if entry['level'] in ('SEVERE', 'WARNING') and entry['source'] != 'rendering']

    def _element(self, selector: str) -> str:
        body = {'using': 'css selector', 'value': selector}
        return self._call('POST', self._session + '/element', body)[ELEMENT]

    def _call(self, method: str, path: str, body: dict | None = None) -> typing.Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._server + path, data, {'Content-Type': 'application/json'}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            problem = json.load(error)['value']
            raise AssertionError(f"{problem['error']}: {problem['message'].splitlines()[0]}") from None
