"""Renews the picture of the README: the dashboard with the peripherals of config/scenarios/lab.yaml.

    screenshot.py PROGRAMS

Takes two minutes, so that charts and events have something to show.
"""
import base64
import pathlib
import sys
import time

from browser import Browser
from gateway import Gateway

HERE = pathlib.Path(__file__).parent
SCENARIO = HERE.parent.parent / 'config/scenarios/lab.yaml'
PAINTED = """
    const canvas = document.querySelector(".spark");
    return canvas?.width && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0);
"""


def main(programs: pathlib.Path) -> None:
    with Gateway(programs, SCENARIO.read_text()) as gateway, Browser(1280, 800) as browser:
        time.sleep(120)
        browser.open(gateway.url)
        browser.wait('return document.querySelectorAll(".card .value").length > 8')
        browser.wait(PAINTED)
        time.sleep(5)
        picture = browser.command('Page.captureScreenshot', {'format': 'webp', 'quality': 85})
        (HERE / 'dashboard.webp').write_bytes(base64.b64decode(picture['data']))


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]).resolve())
