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
    document.body.innerHTML = '<div id="detail"></div><div id="log"></div><div id="configuration"></div>';
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
      for (const name of ["api", "model", "device", "log", "configuration", "series"]) {
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

    # Requests

    def test_only_requests_for_history_are_repeated_while_the_gateway_is_busy(self) -> None:
        counts = self.page.run("""
            const counts = {};
            const names = ["doctor", "devices/lamp/why", "log", "history", "events", "rejects"];
            return Promise.all(names.map(async (name) => {
              answers[name] = () => (requests.filter((each) => each.includes(name)).length < 2 ? 503 : []);
              await read(name).catch(() => {});
              counts[name] = requests.filter((each) => each.includes(name)).length;
            })).then(() => counts);
        """)
        self.assertEqual(counts, {'doctor': 1, 'devices/lamp/why': 1, 'log': 1, 'history': 2, 'events': 2, 'rejects': 2})

    # A device

    def test_a_device_that_no_snapshot_has_is_missing(self) -> None:
        self.page.run('show("none")')
        self.assertIn('Reading …', self.page.text('#detail'))
        self.page.run('snapshot([device])')
        self.assertIn('There is no device none.', self.page.text('#detail'))
        self.page.run('snapshot([{ ...device, device: "none" }])')
        self.assertEqual(self.page.text('#detail h2'), 'none')

    def test_a_device_without_readings_was_last_heard_when_it_advertised(self) -> None:
        heard = self.page.run("""
            const last_heard = "2026-11-21T03:00:00.900000Z";
            model.receive("snapshot", { devices: [{ ...device, last_heard }], events: [], status: {}, now: "2026-11-21T03:00:01Z" });
            const seconds = Date.parse("2026-11-21T03:00:00Z") / 1000;
            return [[0, 0], [0, 0, null, seconds], [0, 0, -60, seconds + 5], [0, 0, -60], [1, 0]].map((counts) => {
              model.receive("gateway", { now: "2026-11-21T03:00:09Z", status: {}, counts: { lamp: counts }, records: {} });
              return new Date(model.devices.get("lamp").lastHeard).toISOString().slice(17);
            });
        """)
        self.assertEqual(heard, ['00.900Z', '00.900Z', '05.000Z', '05.000Z', '09.000Z'])

    def test_new_rejects_appear_on_the_open_page(self) -> None:
        self.page.run("""
            answers.rejects = () => [];
            snapshot([device]);
            show("lamp");
        """)
        self.page.wait('return page.rejects.innerText.includes("No rejects")')
        read = self.page.run("""
            const ts = new Date().toISOString();
            answers.rejects = () => [{ ts, device: "lamp", characteristic: "2a37", bytes: "ff", reason: "too short" }];
            for (let rejects = 1; rejects < 6; rejects += 1) {
              model.receive("gateway", { now: ts, status: {}, counts: { lamp: [0, rejects] }, records: {} });
              page.update();
            }
            return requests.filter((each) => each.includes("rejects")).length;
        """)
        self.assertLessEqual(read, 2, 'many rejects are read at once')
        self.page.wait('return page.rejects.innerText.includes("too short")')

    def test_rejects_that_could_not_be_read_are_read_again(self) -> None:
        self.page.run("""
            answers.rejects = () => 500;
            snapshot([device]);
            show("lamp");
        """)
        self.page.wait('return page.rejects.innerText.includes("cannot be read now")')
        self.page.run('answers.rejects = () => []')
        self.page.wait('return page.rejects.innerText.includes("No rejects")')

    # The history of a device

    BUTTONS = 'return [...document.querySelectorAll("[data-metric]")].map((each) => each.innerText)'

    def test_a_device_without_values_since_the_start_has_the_metrics_of_its_history(self) -> None:
        self.page.run("""
            const ts = new Date(Date.now() - 60000).toISOString();
            const row = (stream, metric, unit) => ({ ts, stream, metric, unit, n: 1, min: 7, mean: 7, max: 7 });
            const stored = [row("meter", "power", "W"), row("battery", "battery_level", "%"), row("vendor", "battery_level", "V")];
            answers.history = (query) => ({
              rows: query.get("every") === "365d" ? [...stored, ...stored] : [row("meter", query.get("metric"), "W")], next: null,
            });
            snapshot([{ ...device, state: "waiting" }]);
            show("lamp");
        """)
        self.page.wait(r'return /mean 7\sW/.test(document.querySelector(".readout").innerText)')
        self.assertEqual(self.page.run(self.BUTTONS), ['power', 'battery level (battery)', 'battery level (vendor)'])
        query = self.page.run('return requests.find((each) => each.includes("every=365d"))')
        self.assertEqual(query, 'api/v1/history?device=lamp&since=365d&every=365d&limit=10000')
        # The chart has two axes.
        for name in ('battery/battery_level', 'vendor/battery_level'):
            self.page.click(f'[data-metric="{name}"]')
        self.assertEqual(self.page.run('return page.history.chosen'), ['power', 'vendor/battery_level'])

    def test_a_device_without_history_is_asked_about_once(self) -> None:
        self.page.run('snapshot([device]); show("lamp")')
        count = 'return requests.filter((each) => each.includes("history")).length'
        for _ in range(3):
            self.page.run('page.history.update()')
        self.assertEqual(self.page.run(count), 1)
        self.assertTrue(self.page.run('return page.history.element.hidden'))

    def test_a_failed_search_for_metrics_is_repeated(self) -> None:
        self.page.run("""
            answers.history = () => 500;
            snapshot([device]);
            show("lamp");
        """)
        self.page.wait('return requests.some((each) => each.includes("history"))')
        self.page.run("""
            const ts = new Date().toISOString();
            answers.history = () => ({ rows: [{ ts, stream: "meter", metric: "power", unit: "W", mean: 7 }], next: null });
        """)
        self.page.wait('return !page.history.element.hidden')

    def test_a_value_that_is_unknown_now_keeps_its_chart(self) -> None:
        self.page.run("""
            snapshot([{ ...device, values: { power: 7 } }]);
            show("lamp");
            window.button = document.querySelector("[data-metric=power]");
            window.loads = 0;
            page.history.load = (isRenewal) => { if (!isRenewal) loads += 1; };
            for (const power of [null, 8, null]) {
              model.receive("values", { lamp: { power } });
              page.history.update();
            }
        """)
        self.assertEqual(self.page.run('return [button.isConnected, page.history.element.hidden, loads]'), [True, False, 0])

    def test_a_stream_that_sent_nothing_since_the_start_has_its_chart(self) -> None:
        self.page.run("""
            const metrics = (...names) => names.map(([metric, kind]) => ({ metric, unit: null, kind }));
            const streams = [
              { stream: "battery", metrics: metrics(["battery_level", "gauge"]) },
              { stream: "scale", metrics: metrics(["weight", "gauge"], ["steps", "counter"], ["is_stable", "state"]) },
            ];
            snapshot([{ ...device, streams, values: { battery_level: 97 } }]);
            show("lamp");
        """)
        self.assertEqual(self.page.run(self.BUTTONS), ['battery level', 'weight', 'steps'])
        self.assertEqual(self.page.run('return page.history.chosen'), ['battery_level'])
        # What the stream leaves out, the device may not have.
        self.page.run('model.receive("values", { lamp: { weight: 80.5 } }); page.history.update()')
        self.assertEqual(self.page.run(self.BUTTONS), ['weight', 'battery level'])

    def test_a_short_range_has_all_samples_of_a_fast_stream_or_summaries_of_all(self) -> None:
        found = self.page.run("""
            const from = Date.parse("2026-11-21T03:00:00Z");
            const ts = (time) => new Date(time).toISOString();
            // Pages as the gateway has them: the oldest rows first, up to 1 MiB.
            const pages = (step) => (query) => {
              const since = Date.parse(query.get("since"));
              const length = query.get("every") ? 1000 : step;
              const rows = [];
              for (let time = since; time < from + 60000 && rows.length < 5000; time += length) {
                rows.push({ ts: ts(time), ...(length === step ? { value: 1 } : { mean: 1, min: 1, max: 1, n: length / step }) });
              }
              const next = since + rows.length * length;
              return { rows, next: next < from + 60000 ? ts(next) : null };
            };
            const lamp = { name: "lamp", unit: () => null };
            const counts = [];
            return (async () => {
              for (const step of [5, 2]) {
                answers.history = pages(step);
                const { rows } = await readSeries(lamp, "power", { from, to: from + 60000, every: "1s", step: 1000 }, undefined);
                counts.push([rows.length, rows.reduce((sum, row) => sum + row.n, 0), rows.at(-1).time - from]);
              }
              return counts;
            })();
        """)
        self.assertEqual(found, [[12000, 12000, 59995], [60, 30000, 59000]])

    # Log and configuration

    def test_a_log_that_could_not_be_read_is_read_again_with_the_next_snapshot(self) -> None:
        self.page.run("""
            window.entries = () => [{ ts: new Date().toISOString(), level: "info", message: "started", fields: {} }];
            window.logPage = new LogPage(model, attempt);
            answers.log = entries;
            logPage.open(null);
        """)
        shown = 'return logPage.list.textContent.includes("started") && logPage.status.textContent'
        self.page.wait('return logPage.list.children.length === 1')
        self.page.run('answers.log = () => { throw new TypeError("no connection"); }; return logPage.load()')
        self.assertEqual(self.page.run(shown), 'The log cannot be read now. Try again')
        self.page.run('answers.log = entries; snapshot([device])')
        self.page.wait('return logPage.status.textContent === ""')
        self.page.run('answers.log = () => 401; return logPage.load()')
        self.assertEqual(self.page.run(shown), 'The log is shown with the token. Show')
        requested = self.page.run("""
            requests.length = 0;
            snapshot([device]);
            logPage.close();
            return requests.length;
        """)
        self.assertEqual(requested, 0)

    def test_a_configuration_that_could_not_be_read_is_read_again_with_the_next_snapshot(self) -> None:
        self.page.run("""
            const lost = () => { throw new TypeError("no connection"); };
            Object.assign(window, { lost, files: () => ({ files: ["gattherd.yaml"] }) });
            answers["configuration/check"] = () => ({ findings: [], restart_needed: [] });
            answers["configuration/file"] = lost;
            window.form = new ConfigurationPage(model, attempt);
        """)
        for answer, words in (('lost', 'cannot be read now.'), ('() => 401', 'is shown with the token.')):
            self.page.run(f'answers.configuration = {answer}; return form.open(null)')
            self.assertEqual(self.page.run('return form.message.textContent'), f'The configuration {words} Try again')
        self.page.run('snapshot([device])')
        self.assertEqual(self.page.run('return requests.length'), 2)
        self.page.run('answers.configuration = lost; return form.open(null)')
        self.page.run('answers.configuration = files; snapshot([device])')
        self.page.wait('return form.message.textContent === "gattherd.yaml cannot be shown. Try again"')
        self.page.run('answers["configuration/file"] = () => ({ text: "gateway: lab", version: "1" }); snapshot([device])')
        self.page.wait('return form.editor.value === "gateway: lab" && !form.editor.disabled')
        # A page that is left reads nothing.
        requested = self.page.run("""
            answers.configuration = lost;
            return form.open("gattherd.yaml").then(() => {
              form.close();
              requests.length = 0;
              snapshot([device]);
              clearTimeout(form.timer);
              return requests.length;
            });
        """)
        self.assertEqual(requested, 0)


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
