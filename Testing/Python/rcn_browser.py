# SPDX-License-Identifier: Apache-2.0
"""Chromium, driven over WebDriver with nothing but the standard library: pages are opened as a reader's browser opens them."""
import base64
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
needs_pdftotext = pytest.mark.skipif(not shutil.which("pdftotext"), reason="needs pdftotext (Debian: poppler-utils)")
needs_chromium = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: chromium chromium-driver)")


class Browser:
    """One window without a screen. `with Browser() as browser: browser.open(path)`."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.driver = subprocess.Popen([DRIVER, f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_for_driver()
            # No sandbox: it does not work for root, which containers run as; only our own pages are opened.
            options = {"binary": CHROMIUM, "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                                                    "--disable-background-networking", "--no-first-run"]}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            self.session = f"/session/{self._call('POST', '/session', {'capabilities': {'alwaysMatch': wanted}})['sessionId']}"
        except BaseException:
            self.driver.terminate()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(10)

    def _wait_for_driver(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                return self._call("GET", "/status")
            except OSError:
                if time.monotonic() > deadline or self.driver.poll() is not None:
                    raise
                time.sleep(0.05)

    def _call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def devtools(self, command, **parameters):
        return self._call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, width=1200, height=900, dark=False, scale=1, media=""):
        """How the page is looked at: size of the window, light or dark, screen or print."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        self.logs()  # of the page before
        self._call("POST", self.session + "/url", {"url": pathlib.Path(path).resolve().as_uri()})

    def run(self, script, *arguments):
        """A function's body in JavaScript."""
        return self._call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def move_to(self, x, y):
        """The pointer, in the window."""
        self.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.devtools("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def logs(self):
        """What the page said on the console, and which addresses it asked for, since the last call."""
        console = [entry["message"] for entry in self._call("POST", self.session + "/se/log", {"type": "browser"})]
        events = [json.loads(entry["message"])["message"] for entry in self._call("POST", self.session + "/se/log", {"type": "performance"})]
        return console, [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path, top=0, height=None):
        """From `top` on; the window's height unless told."""
        size = self.devtools("Page.getLayoutMetrics")
        clip = {"x": 0, "y": top, "width": size["cssLayoutViewport"]["clientWidth"],
                "height": min(height or size["cssLayoutViewport"]["clientHeight"], size["cssContentSize"]["height"] - top), "scale": 1}
        data = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def pdf(self, **options):
        return base64.b64decode(self.devtools("Page.printToPDF", **{"printBackground": False, **options})["data"])

    def sheets(self):
        """The text of each sheet of A4 paper that the page prints on; by pdftotext."""
        pdf = self.pdf(paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        done = subprocess.run(["pdftotext", "-", "-"], input=pdf, capture_output=True, check=True)
        return done.stdout.decode().split("\f")[:-1]
