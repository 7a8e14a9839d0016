"""Modules of the dashboard in an empty document, with responses from the test.

    test_modules.py PROGRAMS SCREENSHOTS
"""
import sys
import unittest

from browser import Browser
from gateway import LAB, Gateway
from test_dashboard import PROGRAMS

SETUP = """
    const url = arguments[0];
    document.body.innerHTML = '<div id="detail"></div>';
    window.requests = [];
    // Responses by the name of a resource: an object, or the status of a failure.
    window.answers = { history: () => ({ rows: [], next: null }) };
    window.fetch = async (path) => {
      requests.push(path);
      const [name, query] = path.slice("api/v1/".length).split("?");
      const answer = answers[name]?.(new URLSearchParams(query)) ?? [];
      const isFailure = typeof answer === "number";
      return new Response(JSON.stringify(isFailure ? { error: "busy" } : answer), { status: isFailure ? answer : 200 });
    };
    window.attempt = async (action, onFailure) => {
      try {
        return await action();
      } catch (error) {
        onFailure?.(error);
        return undefined;
      }
    };
    return (async () => {
      for (const name of ["model", "device"]) {
        Object.assign(window, await import(`${url}${name}.js`));
      }
      window.model = new Model();
      window.device = {
        device: "lamp", address: "", profiles: [], state: "ready", attempt: 0, readings: 0, rejects: 0,
        streams: [], controls: [], values: {},
      };
      window.snapshot = (devices) => model.receive("snapshot", {
        devices, events: [], status: {}, now: new Date().toISOString(),
      });
      window.show = (name) => {
        window.page = new DevicePage(model, () => {}, attempt, attempt);
        page.open(name);
      };
    })();
"""


class ModuleTests(unittest.TestCase):
    """Single modules."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = cls.enterClassContext(Gateway(PROGRAMS, LAB))

    def setUp(self) -> None:
        self.page = self.enterContext(Browser(800, 600))
        self.page.open(self.gateway.url + 'healthz')
        self.page.run(SETUP, self.gateway.url)

    # A device

    def test_a_device_that_no_snapshot_has_is_missing(self) -> None:
        self.page.run('show("none")')
        self.assertIn('Reading …', self.page.text('#detail'))
        self.page.run('snapshot([device])')
        self.assertIn('There is no device none.', self.page.text('#detail'))
        self.page.run('snapshot([{ ...device, device: "none" }])')
        self.assertEqual(self.page.text('#detail h2'), 'none')


class FirstConnectionTests(unittest.TestCase):
    """The page before its first message."""

    def test_without_a_message_nothing_is_said_about_values_and_devices(self) -> None:
        with Gateway(PROGRAMS, LAB) as gateway, Browser(1440, 900) as page:
            page.command('Network.enable', {})
            # A forwarded request comes from elsewhere: reading needs the token.
            page.command('Network.setExtraHTTPHeaders', {'headers': {'X-Forwarded-For': '192.0.2.1'}})
            page.open(gateway.url)
            page.wait('return document.querySelector("#token").open')
            page.run("""
                // Each attempt that failed is shown once.
                window.losses = 0;
                new MutationObserver((changes) => { losses += changes.length; })
                  .observe(document.body, { attributeFilter: ["data-live"] });
            """)
            page.click('#token-cancel')
            page.wait('return losses > 1')
            self.assertFalse(page.run('return document.querySelector("#stale").checkVisibility()'))
            self.assertFalse(page.run('return document.querySelector("#empty").checkVisibility()'))
            page.click('#lock')
            page.wait('return document.querySelector("#token").open')
            page.type('#token-text', gateway.token)
            page.click('#token [value=use]')
            page.wait('return document.querySelectorAll(".card .value").length > 3')
            page.type('#search', 'none')
            self.assertEqual(page.text('#empty'), 'No device matches.')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
