"""The dashboard in a real browser, on a gateway with simulated peripherals.

    test_dashboard.py PROGRAMS SCREENSHOTS

PROGRAMS is the folder of gattherd and gattherd-sim. Needs chromium and chromium-driver.
"""
import pathlib
import sys
import time
import unittest

from browser import Browser
from gateway import MANY, KINDS, LAB, Gateway

PROGRAMS, SCREENSHOTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])

STATE = 'return document.querySelector(`[data-device="${arguments[0]}"] .state`).textContent === arguments[1]'
PAINTED = """
    const canvas = document.querySelector(arguments[0]);
    if (!canvas?.width) return false;
    return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((octet) => octet > 0);
"""


class Page(Browser):
    """An open dashboard."""

    def __init__(self, gateway: Gateway, width: int = 1440, height: int = 900, *, dark: bool = False):
        super().__init__(width, height)
        scheme = [{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}]
        self.command('Emulation.setEmulatedMedia', {'features': scheme})
        self.open(gateway.url)
        self.wait('return document.querySelectorAll(".card .value").length > 3')

    def state(self, device: str, name: str) -> None:
        """Waits until the card of the device shows this state."""
        self.wait(STATE, device, name)

    def show(self, device: str) -> None:
        self.click(f'[data-device="{device}"] .open')
        self.wait('return document.querySelector("#detail:not([hidden]) h2")?.textContent === arguments[0]', device)

    def enter_token(self, token: str) -> None:
        self.wait('return document.querySelector("#token").open')
        self.type('#token-text', token)
        self.click('#token [value=use]')


class DashboardTests(unittest.TestCase):
    """Single devices, operated as by a user."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = cls.enterClassContext(Gateway(PROGRAMS, LAB))

    def page(self, *arguments: int, dark: bool = False) -> Page:
        page = self.enterContext(Page(self.gateway, *arguments, dark=dark))
        self.addCleanup(lambda: self.assertEqual(page.errors(), self.expected_errors))
        return page

    expected_errors: list[str] = []

    def test_each_device_has_a_card_with_live_values(self) -> None:
        page = self.page()
        names = page.run('return [...document.querySelectorAll(".card h3")].map((each) => each.textContent)')
        self.assertEqual(names, ['dial', 'strap-1', 'strap-2', 'strap-3'])
        for name in names:
            page.state(name, 'Ready')
        rate = '[data-device=strap-1] .value'
        first = page.text(rate)
        self.assertRegex(first, r'^\d+\sbpm$')
        page.wait('return document.querySelector(arguments[0]).innerText !== arguments[1]', rate, first)
        page.wait(PAINTED, '[data-device=strap-1] .spark')
        self.assertEqual(page.text('#live'), 'Live')
        self.assertIn('4 of 4 ready', page.text('[data-tile=Devices]'))
        self.assertIn('Connected', page.text('[data-tile="Output mqtt"]'))
        page.screenshot(SCREENSHOTS / 'desktop-light.png')

    def test_a_lost_link_is_shown_until_it_is_ready_again(self) -> None:
        page = self.page()
        self.gateway.inject('refuse', 'strap-2', '3')
        self.gateway.inject('drop', 'strap-2')
        page.state('strap-2', 'Backing off')
        self.assertRegex(page.text('[data-device=strap-2] .summary'), r'again in \d+\ss|trying again')
        self.assertEqual(page.text('[data-device=strap-2] .actions button'), 'Try now')
        page.screenshot(SCREENSHOTS / 'backing-off.png')
        page.state('strap-2', 'Ready')
        self.assertIn('Backing off', page.text('#events'))

    def test_with_the_token_a_device_is_disconnected_and_connected(self) -> None:
        self.expected_errors = [self.unauthorised('strap-3/disconnect')] * 2
        page = self.page()
        button = '[data-device=strap-3] .actions button'
        page.click(button)
        page.enter_token('no-such-token-at-all')
        page.wait('return document.querySelector("#token-reason").innerText.includes("wrong")')
        page.enter_token(self.gateway.token)
        page.state('strap-3', 'Held')
        self.assertEqual(page.text(button), 'Connect')
        page.click(button)
        page.state('strap-3', 'Ready')

    def test_enter_submits_the_token_and_repeats_the_request(self) -> None:
        self.expected_errors = [self.unauthorised('strap-1/disconnect')]
        page = self.page()
        page.run('document.querySelector("[data-device=strap-1] .actions button").focus()')
        page.press('\ue007')
        page.wait('return document.querySelector("#token").open')
        self.assertEqual(page.run('return document.activeElement.id'), 'token-text')
        self.assertFalse(page.run('return document.querySelector("#token-forget").checkVisibility()'))
        page.press('\ue007')
        self.assertTrue(page.run('return document.querySelector("#token").open'), 'nothing was typed')
        page.screenshot(SCREENSHOTS / 'token.png')
        page.press(*self.gateway.token, '\ue007')
        page.state('strap-1', 'Held')
        self.assertEqual(page.text('#lock'), 'Unlocked')
        page.click('[data-device=strap-1] .actions button')
        page.state('strap-1', 'Ready')

    def test_only_its_button_removes_the_token(self) -> None:
        page = self.page()
        page.run('sessionStorage.setItem("gattherd-token", arguments[0])', self.gateway.token)
        for keys in (['\ue00c'], ['\ue004', '\ue004', '\ue004', '\ue007']):
            page.click('#lock')
            page.wait('return document.querySelector("#token").open')
            if len(keys) > 1:
                page.run('document.querySelector("#token-cancel").focus()')
                keys = ['\ue007']
            page.press(*keys)
            page.wait('return !document.querySelector("#token").open')
            self.assertEqual(page.run('return sessionStorage.getItem("gattherd-token")'), self.gateway.token)
        page.click('#lock')
        page.click('#token-forget')
        page.wait('return sessionStorage.getItem("gattherd-token") === null')
        self.assertEqual(page.text('#lock'), 'Locked')

    def test_sparklines_show_the_past_without_new_values(self) -> None:
        self.page().wait(PAINTED, '[data-device=strap-2] .spark')
        with self.gateway.gone():
            page = self.page()
            page.wait(PAINTED, '[data-device=strap-2] .spark')
            page.screenshot(SCREENSHOTS / 'past.png')

    def test_a_device_shows_its_events_after_many_of_others(self) -> None:
        page = self.page()
        for start in range(0, 200, 40):
            page.run("""
                const [token, start] = arguments;
                const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
                return (async () => {
                  for (let value = start; value < start + 42; value += 1) {
                    const body = JSON.stringify({ value });
                    await fetch("api/v1/devices/dial/controls/number", { method: "POST", headers, body });
                  }
                })();
            """, self.gateway.token, start)
        page.open(self.gateway.url)
        page.wait('return document.querySelectorAll(".card .value").length > 3')
        page.show('strap-3')
        page.wait('return /Ready/.test(document.querySelector("#detail .list").innerText)')
        self.assertNotIn('No events yet', page.text('#detail'))

    def test_a_declined_token_is_not_asked_for_again(self) -> None:
        page = self.enterContext(Browser(1440, 900))
        page.command('Network.enable', {})
        # A forwarded request comes from elsewhere: reading needs the token.
        page.command('Network.setExtraHTTPHeaders', {'headers': {'X-Forwarded-For': '192.0.2.1'}})
        page.open(self.gateway.url)
        page.wait('return document.querySelector("#token").open')
        page.click('#token-cancel')
        page.wait('return document.querySelector("#live").innerText === "Reading needs the token"')
        page.run("""
            window.refusals = 0;
            const send = window.fetch;
            window.fetch = async (...request) => {
              const response = await send(...request);
              if (response.status === 401) refusals += 1;
              return response;
            };
        """)
        page.wait('return refusals > 1')
        self.assertFalse(page.run('return document.querySelector("#token").open'))
        page.click('#lock')
        page.wait('return document.querySelector("#token").open')
        page.type('#token-text', self.gateway.token)
        page.click('#token [value=use]')
        page.wait('return document.querySelectorAll(".card .value").length > 3')
        self.assertEqual(page.text('#live'), 'Live')

    def unauthorised(self, path: str) -> str:
        return (f'{self.gateway.url}api/v1/devices/{path} - Failed to load resource: '
                'the server responded with a status of 401 (Unauthorized)')

    def test_the_slider_sets_the_number_and_limits_its_requests(self) -> None:
        page = self.page()
        page.run('sessionStorage.setItem("gattherd-token", arguments[0])', self.gateway.token)
        page.show('dial')
        slider = '#page-dial-number'
        page.wait('return document.querySelector("#detail .values dd")?.innerText === document.querySelector(arguments[0]).value', slider)
        started = time.monotonic()
        page.run("""
            const slider = document.querySelector(arguments[0]);
            for (let value = 43; value <= 200; value += 1) {
              slider.value = value;
              slider.dispatchEvent(new Event("input", { bubbles: true }));
            }
        """, slider)
        page.wait('return [...document.querySelectorAll("#detail .values dd")][0].innerText === "200"')
        requests = page.run("""
            return performance.getEntriesByType("resource").filter((each) => each.name.endsWith("/number")).length
        """)
        self.assertLessEqual(requests, 2 + (time.monotonic() - started) / 0.15)
        page.run('document.querySelector(arguments[0]).focus()', slider)
        page.press('\ue014')
        page.wait('return [...document.querySelectorAll("#detail .values dd")][0].innerText === "201"')
        page.screenshot(SCREENSHOTS / 'controls.png')

    def test_the_slider_does_not_jump_back_before_the_echo(self) -> None:
        page = self.page()
        page.run('sessionStorage.setItem("gattherd-token", arguments[0])', self.gateway.token)
        page.show('dial')
        slider = '#page-dial-number'
        page.wait('return document.querySelector("#detail .values dd")?.innerText === document.querySelector(arguments[0]).value', slider)
        # The gateway confirms the value, and the device never reports it.
        page.run("""
            const slider = document.querySelector(arguments[0]);
            const { fetch } = window;
            window.fetch = (url, ...rest) => String(url).endsWith("/controls/number")
              ? Promise.resolve(new Response("{}", { headers: { "Content-Type": "application/json" } })) : fetch(url, ...rest);
            window.before = slider.value;
            slider.value = slider.value === "7" ? "8" : "7";
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            window.setAt = performance.now();
            const timer = setInterval(() => {
              if (slider.value !== window.before) return;
              window.keptFor = performance.now() - window.setAt;
              clearInterval(timer);
            }, 5);
        """, slider)
        page.wait('return window.keptFor > 0')
        self.assertGreater(page.run('return window.keptFor'), 1900)

    def test_the_chart_covers_ranges_from_minutes_to_a_year(self) -> None:
        page = self.page(dark=True)
        page.show('strap-1')
        for index in range(8):
            page.run('document.querySelector("#detail .readout").textContent = ""; window.scrollTo(0, 0)')
            page.click(f'.ranges button:nth-child({index + 1})')
            title = page.text('.ranges [aria-pressed=true]')
            self.assertRegex(
                page.wait('return document.querySelector("#detail .readout").innerText'),
                rf'^{title}: mean \d+(\.\d+)?\sbpm, from \d+\sbpm to \d+\sbpm, \d+ samples$')
            page.wait(PAINTED, '.chart')
        page.click('.ranges button')
        page.wait('return document.querySelector("#detail .readout").innerText.startsWith("5 min")')
        page.run('document.querySelector(".chart").focus()')
        page.press('\ue012', '\ue012')
        page.wait('return /^[0-9:]{8}: .*\\sbpm/.test(document.querySelector("#detail .readout").innerText)')
        page.screenshot(SCREENSHOTS / 'history-dark.png')

    def test_the_page_can_be_used_without_a_mouse(self) -> None:
        page = self.page()
        page.press('/')
        page.press(*'strap-2')
        page.wait('return document.querySelectorAll(".card:not([hidden])").length === 1')
        for _ in range(20):
            page.press('\ue004')
            if page.run('return document.activeElement.className === "open"'):
                break
        page.press('\ue007')
        page.wait('return document.querySelector("#detail:not([hidden]) h2")?.textContent === "strap-2"')
        self.assertEqual(page.run('return document.activeElement.id'), 'main')
        page.run('history.back()')
        page.wait('return document.querySelector("#detail").hidden && location.hash === ""')
        page.wait('return document.querySelectorAll(".card:not([hidden])").length === 1')

    def test_all_controls_have_accessible_names(self) -> None:
        page = self.page()
        page.show('dial')
        nodes = page.command('Accessibility.getFullAXTree', {})['nodes']
        roles = {'button', 'link', 'textbox', 'searchbox', 'slider', 'spinbutton', 'checkbox', 'combobox', 'tab', 'image'}
        named = 0
        for node in nodes:
            if node['ignored'] or node.get('role', {}).get('value') not in roles:
                continue
            self.assertTrue(node.get('name', {}).get('value'), node)
            named += 1
        self.assertGreater(named, 10)

    def test_text_has_enough_contrast_in_light_and_dark(self) -> None:
        for dark in (False, True):
            page = self.page(dark=dark)
            for name in ('text', 'muted', 'accent', 'good', 'busy', 'warn', 'idle', 'held', 'bad'):
                for back in ('surface', 'back'):
                    self.assertGreaterEqual(contrast(page, name, back), 4.5, f'{name} on {back}, dark: {dark}')
            page.screenshot(SCREENSHOTS / f"desktop-{'dark' if dark else 'light'}.png")

    def test_a_phone_needs_no_horizontal_scrolling(self) -> None:
        page = self.page(360, 740)
        page.screenshot(SCREENSHOTS / 'phone.png')
        self.assertLessEqual(page.run('return document.documentElement.scrollWidth'), 360)
        page.show('dial')
        self.assertLessEqual(page.run('return document.querySelector("#detail").scrollWidth'), 360)
        page.screenshot(SCREENSHOTS / 'phone-device.png')

    def test_a_lost_connection_is_shown_and_restored(self) -> None:
        page = self.page()
        with self.gateway.frozen():
            page.wait('return document.querySelector("#live").dataset.state === "lost"')
            self.assertRegex(page.text('#live'), r'No connection, again in \d+\ss')
            self.assertRegex(page.text('#stale'), r'values below are from \d\d:\d\d:\d\d')
            page.screenshot(SCREENSHOTS / 'no-connection.png')
        page.wait('return document.querySelector("#live").dataset.state === "live"')
        rate = '[data-device=strap-1] .value'
        page.wait('return document.querySelector(arguments[0]).innerText !== arguments[1]', rate, page.text(rate))

    def test_rejects_are_listed(self) -> None:
        self.gateway.inject('notify', 'strap-1', '2a37', 'ff')
        page = self.page()
        page.wait('return /1 reject/.test(document.querySelector("[data-device=strap-1] .foot").innerText)')
        page.click('#tab-rejects')
        page.wait('return document.querySelector("#rejects").innerText.includes("2a37")')
        self.assertIn('ff', page.text('#rejects'))


class CardTests(unittest.TestCase):
    """Devices of several kinds, in windows of several widths."""

    CUT = """
        return [...document.querySelectorAll(".card .value, .card dt, .card .foot")].filter((each) =>
            each.checkVisibility() && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 3))
            .map((each) => each.textContent);
    """
    LONG = ('A manufacturer with quite a long name, Limited',)

    def test_values_are_shown_in_full(self) -> None:
        with Gateway(PROGRAMS, KINDS) as gateway:
            for width, height, dark in ((360, 740, False), (800, 900, True), (1280, 900, False), (1920, 1080, True)):
                with Page(gateway, width, height, dark=dark) as page:
                    # Cards outside of the window are drawn when they come into it.
                    for device in ('weather', 'fever'):
                        card = f'[data-device={device}]'
                        page.run('document.querySelector(arguments[0]).scrollIntoView()', card)
                        page.wait(PAINTED, card + ' .spark')
                    page.wait('return document.querySelectorAll(".card .value").length > 8')
                    page.run('scrollTo(0, 0)')
                    page.screenshot(SCREENSHOTS / f'kinds-{width}.png')
                    cut = [text for text in page.run(self.CUT) if text not in self.LONG]
                    self.assertEqual(cut, [], f'at a width of {width}')
                    self.assertLessEqual(page.run('return document.documentElement.scrollWidth'), width)
                    page.show('strap')
                    page.wait(PAINTED, '.chart')
                    page.screenshot(SCREENSHOTS / f'kinds-{width}-device.png')
                    self.assertEqual(page.errors(), [])


class ModuleTests(unittest.TestCase):
    """Modules of the page in an empty document, with responses from the test."""

    SETUP = """
        const url = arguments[0];
        window.requests = [];
        window.statusCode = 200;
        window.rows = { "1s": [], "1m": [], "20m": [] };
        window.fetch = async (path) => {
          requests.push(path);
          if (statusCode !== 200) return new Response(JSON.stringify({ error: "busy" }), { status: statusCode });
          const every = new URLSearchParams(path.split("?")[1]).get("every");
          return new Response(JSON.stringify(path.includes("history") ? { rows: rows[every] ?? [] } : []));
        };
        return (async () => {
          for (const name of ["model", "sparkline", "records", "words", "gateway"]) Object.assign(window, await import(`${url}${name}.js`));
          window.model = new Model();
          window.device = {
            device: "lamp", address: "", profiles: [], state: "ready", attempt: 0, readings: 0, rejects: 0,
            streams: [], controls: [], values: {},
          };
          window.snapshot = (devices) => model.receive("snapshot", {
            devices, events: [], status: {}, now: new Date().toISOString(),
          });
          window.past = (count, step) => Array.from({ length: count }, (_, index) => ({
            metric: "power", ts: new Date(Date.now() - (count - index) * step).toISOString(), mean: index,
          }));
        })();
    """

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = cls.enterClassContext(Gateway(PROGRAMS, LAB))

    def setUp(self) -> None:
        self.page = self.enterContext(Browser(800, 600))
        self.page.open(self.gateway.url + 'healthz')
        self.page.run(self.SETUP, self.gateway.url)

    OUTPUTS = """
        const style = document.createElement("link");
        Object.assign(style, { rel: "stylesheet", href: `${arguments[0]}style.css` });
        document.head.append(style);
        document.body.innerHTML = '<h1 id="title"></h1><main><ul id="gateway" class="tiles"></ul></main>';
        const output = (name, members) => ({
          name, kind: name, state: "connected", target: `http://${name}:8086`, backlog: 0, lag: 0,
          delivered: 131, skipped: 0, errors: 0, ...members,
        });
        window.show = (outputs) => model.receive("gateway", {
          now: "2026-11-21T03:00:00Z", counts: {},
          status: { gateway: "lab", started: "2026-11-21T02:00:00Z", adapters: [], history: { seq: 1, size: 1 }, outputs },
        });
        new Gateway(model);
        show([
          output("mqtt", {}),
          output("influx", { state: "waiting", backlog: 1200, lag: 192.5, error: "cannot reach http://a-long-host-name-of-a-data-center.example:8086/write", next_try: "2026-11-21T03:00:05Z" }),
          output("lines", { backlog: 7, lag: 121 }),
          output("sparkplug", { skipped: 40 }),
        ]);
        return new Promise((done) => { style.onload = () => done(true); });
    """

    def tile(self, name: str) -> list[str]:
        return self.page.run("""
            const tile = document.querySelector(`[data-tile="Output ${arguments[0]}"]`);
            return [tile.dataset.kind, tile.querySelector("b").innerText, tile.querySelector("span").innerText];
        """, name)

    def test_each_output_is_shown_with_its_state_lag_and_error(self) -> None:
        self.page.run(self.OUTPUTS, self.gateway.url)
        self.assertEqual(self.tile('mqtt')[:2], ['good', 'Connected'])
        kind, state, more = self.tile('influx')
        self.assertEqual([kind, state], ['bad', 'Failing'])
        self.assertRegex(more, r'/write · again in 5\ss · 1,200 waiting · 3\smin behind · 131 delivered$')
        self.assertEqual(self.tile('lines')[:2], ['warn', 'Behind'])
        self.assertEqual(self.tile('sparkplug')[:2], ['warn', 'Connected'])
        self.assertIn('40 skipped', self.tile('sparkplug')[2])

    def test_outputs_fit_a_phone(self) -> None:
        self.page.command('Emulation.setDeviceMetricsOverride', {'width': 360, 'height': 740, 'deviceScaleFactor': 1, 'mobile': False})
        self.page.run(self.OUTPUTS, self.gateway.url)
        self.assertLessEqual(self.page.run('return document.documentElement.scrollWidth'), 360)
        for name in ('mqtt', 'influx', 'lines', 'sparkplug'):
            self.assertTrue(self.page.run("""
                const { left, right } = document.querySelector(`[data-tile="Output ${arguments[0]}"]`).getBoundingClientRect();
                return left >= 0 && right <= 360;
            """, name), name)
        self.page.screenshot(SCREENSHOTS / 'phone-outputs.png')

    def test_a_removed_output_disappears_and_none_is_shown_as_such(self) -> None:
        self.page.run(self.OUTPUTS, self.gateway.url)
        self.page.run('show([])')
        self.assertEqual(self.page.run('return document.querySelectorAll(`[data-tile^="Output "]`).length'), 0)
        self.assertIn('None', self.page.text('[data-tile=Outputs]'))

    def test_a_new_alert_is_the_first_tile(self) -> None:
        self.page.run(self.OUTPUTS, self.gateway.url)
        tiles = self.page.run("""
            const alerts = [{ alert: "warm", device: "freezer", since: "2026-11-21T02:59:00Z", detail: "temperature is -9" }];
            model.receive("gateway", { now: "2026-11-21T03:00:00Z", counts: {}, status: { ...model.status, alerts } });
            return [...document.querySelectorAll(".tile")].map((tile) => tile.dataset.tile);
        """)
        self.assertEqual(tiles[:2], ['Alert warm of freezer', 'Devices'])
        self.assertEqual(len(tiles), len(set(tiles)))

    def test_a_sparkline_is_filled_when_its_first_value_comes_late(self) -> None:
        self.page.run("""
            rows["1m"] = past(30, 60000);
            window.sparks = new SparkHistory(model);
            snapshot([device]);
            sparks.request("lamp");
        """)
        self.assertEqual(self.page.run('return requests.length'), 0, 'without a numeric metric there is nothing to read')
        self.page.run('model.receive("values", { lamp: { power: 7 } }); sparks.request("lamp")')
        self.page.wait('return model.devices.get("lamp").spark("power").times.length > 29')
        self.assertEqual(self.page.run('return model.devices.get("lamp").spark("power").span'), 3600000)

    def test_a_sparkline_is_filled_again_when_its_newest_point_is_too_old(self) -> None:
        self.page.run("""
            rows["1s"] = past(40, 1000);
            window.sparks = new SparkHistory(model);
            snapshot([{ ...device, values: { power: 7 } }]);
            sparks.request("lamp");
        """)
        self.page.wait('return model.devices.get("lamp").spark("power").times.length === 40')
        self.page.run("""
            rows = { "1s": [], "1m": past(20, 60000), "20m": [] };
            sparks.request("lamp");
            window.before = requests.length;
            model.offset = 120000;
            sparks.request("lamp");
        """)
        self.page.wait('return model.devices.get("lamp").spark("power").span === 3600000')
        self.assertEqual(self.page.run('return [before, requests.length]'), [1, 2])
        self.assertFalse(self.page.run('return model.devices.get("lamp").spark("power").isOutdated(model.now())'))

    def test_frequent_values_bring_a_sparkline_back_to_a_minute(self) -> None:
        self.page.run("""
            rows["20m"] = past(40, 1200000);
            window.sparks = new SparkHistory(model);
            snapshot([{ ...device, values: { power: 7 } }]);
            sparks.request("lamp");
        """)
        self.page.wait('return model.devices.get("lamp").spark("power").span === 86400000')
        self.page.run('for (let value = 0; value < 12; value += 1) model.receive("values", { lamp: { power: value } })')
        self.assertEqual(self.page.run('return model.devices.get("lamp").spark("power").span'), 60000)

    def test_unreadable_events_are_not_called_none(self) -> None:
        first = self.page.run("""
            document.body.innerHTML = `<button id="tab-events"></button><button id="tab-rejects"></button>
                <ol id="events"></ol><ol id="rejects"></ol>`;
            statusCode = 500;
            window.records = new Records(model, () => {});
            snapshot([device]);
            return document.querySelector("#events").innerText;
        """)
        self.assertIn('Reading older events', first)
        self.page.wait('return document.querySelector("#events").innerText.includes("cannot be read now")')
        self.page.run('statusCode = 200; snapshot([device])')
        self.page.wait('return document.querySelector("#events").innerText === "No events yet."')

    def test_a_new_description_keeps_what_is_typed(self) -> None:
        self.page.run("""
            document.body.innerHTML = '<div id="detail"></div>';
            const attempt = async (action) => { try { return await action(); } catch (error) { return null; } };
            const stream = (metrics) => ({ stream: "s", metrics: metrics.map((metric) => ({ metric, unit: null, kind: "integer" })) });
            const dial = { control: "number", kind: "integer", min: 0, max: 10, unit: null, throttle: null, echo: "s" };
            const full = { ...device, streams: [stream(["number", "old"])], controls: [dial], values: { number: 1, old: 2 } };
            window.full = full;
            window.describe = (members) => model.receive("device", { ...full, ...members });
            window.stream = stream;
            window.dial = dial;
            snapshot([full]);
            return import(`${arguments[0]}device.js`).then(({ DevicePage }) => {
              window.shown = new DevicePage(model, () => {}, attempt, attempt);
              shown.open("lamp");
            });
        """, self.gateway.url)
        self.page.run('document.querySelector("#detail .edit:has(input)").open = true')
        note = '#detail .edit label:nth-of-type(3) input'
        self.page.type(note, 'new battery')
        self.page.run('describe({ title: "Lamp", streams: [stream(["number"])], values: { number: 3 } })')
        self.page.wait('return document.querySelector("#detail h2").innerText === "Lamp"')
        self.assertEqual(self.page.run('return [document.activeElement.value, document.querySelector(arguments[0]).value]', note),
                         ['new battery'] * 2)
        title = '#detail .edit label:nth-of-type(1) input'
        self.assertEqual(self.page.run('return document.querySelector(arguments[0]).value', title), 'Lamp')
        self.assertEqual(self.page.text('#detail .values').split(), ['number', '3'])
        self.page.run('describe({ controls: [{ ...dial, max: 20 }] })')
        self.assertEqual(self.page.run('return document.querySelector("#page-lamp-number").max'), '20')
        self.page.run("""
            window.last = { ...full, controls: [{ ...dial, max: 20 }], streams: [stream(["level"])], values: { level: 7 } };
            describe(last);
        """)
        self.page.wait('return document.querySelector("#page-lamp-number").value === "7"')
        self.page.run("""
            const lost = { ts: "2026-11-21T03:00:00Z", device: "lamp", kind: "records", detail: { state: "lost" } };
            model.receive("snapshot", { devices: [last], events: [lost], status: {}, now: new Date().toISOString() });
        """)
        self.page.wait('return document.querySelector("#detail ol.list").innerText.includes("state lost")')
        self.page.run('shown.close()')

    def test_the_value_at_the_start_of_a_range_is_the_last_one_before_it(self) -> None:
        last, *begins = self.page.run("""
            const url = arguments[0];
            const [minute, hour] = [60000, 3600000];
            const now = Date.parse("2026-11-20T12:34:56Z");
            const samples = [];
            // Every 20 s for five days, and then no more.
            for (let time = now - 7 * 24 * hour; time < now - 50 * hour; time += 20000) samples.push({ time, value: samples.length });
            let count = 0;
            const lengths = { "1s": 1000, "1m": minute, "1h": hour };
            const history = (query) => {
              const length = lengths[query.get("every")];
              const within = samples.filter(({ time }) => time >= Date.parse(query.get("since")) && time < Date.parse(query.get("until")));
              const spans = new Map(within.map(({ time, value }) => [length ? Math.floor(time / length) * length : time, value]));
              return [...spans].slice(0, Number(query.get("limit"))).map(([time, mean]) => ({ ts: new Date(time).toISOString(), mean: length ? mean - 0.5 : mean }));
            };
            window.fetch = async (path) => {
              const rows = history(new URLSearchParams(path.split("?")[1]));
              count += rows.length;
              return new Response(JSON.stringify({ rows, next: null }));
            };
            let readSeries;
            const lamp = { name: "lamp", unit: () => null };
            const begin = async (from, length) => {
              count = 0;
              const { rows } = await readSeries(lamp, "power", { from, to: from + length, every: "1s", step: 1000 }, undefined);
              return [rows[0]?.time === from && rows[0].isCarried, rows[0]?.mean, count];
            };
            const last = samples.at(-1);
            return (async () => {
              ({ readSeries } = await import(`${url}series.js`));
              return [last.value, await begin(now, hour), await begin(last.time + minute + 0.5, 5 * minute), await begin(now + 30 * 24 * hour, hour)];
            })();
        """, self.gateway.url)
        self.assertGreater(last, 10000)
        for begin in begins[:2]:
            self.assertEqual(begin[:2], [True, last])
            self.assertLess(begin[2], 250)
        self.assertEqual(begins[2], [False, None, 0])

    def test_a_chart_that_is_renewed_is_not_announced_again(self) -> None:
        live = self.page.run("""
            snapshot([device]);
            return import(`${arguments[0]}history.js`).then(({ History }) => {
              const history = new History(model, "lamp", () => {});
              const series = (mean) => [{ metric: "power", unit: "W", rows: [{ time: 0, n: 1, min: mean, mean, max: mean }] }];
              return [false, true, false].map((isRenewal, index) => {
                history.show(series(index), 0, 60000, 1000, isRenewal);
                return [history.line.getAttribute("aria-live"), history.line.textContent.includes(`mean ${index}`)];
              });
            });
        """, self.gateway.url)
        self.assertEqual(live, [['polite', True], ['off', True], ['polite', True]])

    def test_a_metric_of_several_streams_is_shown_for_each(self) -> None:
        shown = self.page.run("""
            const stream = (name, unit) => ({ stream: name, metrics: [{ metric: "battery_level", unit, kind: "gauge" }] });
            const streams = [stream("battery", "%"), stream("vendor", "V")];
            const values = { "battery/battery_level": 98, battery_level: 98, "vendor/battery_level": 3.1 };
            snapshot([
              { ...device, streams, values },
              { ...device, device: "plain", streams: [streams[0]], values: { battery_level: 98 } },
            ]);
            return [...model.devices.values()].map((each) =>
              sortedMetrics(each).map((name) => [metricWords(name), each.unit(name), each.values[name], each.battery]));
        """)
        self.assertEqual(shown, [
            [['battery level (battery)', '%', 98, 98], ['battery level (vendor)', 'V', 3.1, 98]],
            [['battery level', '%', 98, 98]]])

    def test_a_chart_reads_one_stream_or_combines_all(self) -> None:
        path, means = self.page.run("""
            const url = arguments[0];
            const ts = new Date().toISOString();
            rows["1m"] = [{ ts, n: 1, min: 98, mean: 98, max: 98 }, { ts, n: 3, min: 2, mean: 2, max: 2 }];
            const range = { from: Date.now() - 3600000, to: Date.now() + 60000, every: "1m", step: 60000 };
            const lamp = { name: "lamp", unit: () => null };
            return (async () => {
              const { readSeries } = await import(`${url}series.js`);
              requests.length = 0;
              await readSeries(lamp, "vendor/battery_level", range, undefined);
              const first = requests[0];
              const { rows: all } = await readSeries(lamp, "rssi", range, undefined);
              return [first, all.map(({ mean, min, max }) => [mean, min, max])];
            })();
        """, self.gateway.url)
        self.assertIn('metric=battery_level', path)
        self.assertIn('stream=vendor', path)
        self.assertEqual(means, [[26, 2, 98]] * 2, "the value before the range, which holds, and that of the range")

    def test_a_snapshot_has_the_last_time_of_each_device(self) -> None:
        heard = self.page.run("""
            for (const last_heard of ["2026-11-28T03:00:00Z", "2026-11-21T03:00:00Z"]) snapshot([{ ...device, last_heard }]);
            return new Date(model.devices.get("lamp").lastHeard).toISOString();
        """)
        self.assertEqual(heard, '2026-11-21T03:00:00.000Z', 'the clock of the gateway was ahead')

    def test_a_device_that_waits_says_why(self) -> None:
        for members, words in (('{}', 'not seen yet'),
                               ('{ reason: "silent", detail: "nothing was heard for 10m" }', 'no values received: nothing was heard for 10m'),
                               ('{ reason: "adapterFull" }', 'all adapters are full')):
            summary = self.page.run(f'return linkSummary({{ state: "waiting", since: 0, attempt: 0, ...{members} }}, 5000)')
            self.assertEqual(summary.split(' · ')[1:], [words])

    def test_numbers_keep_all_digits_before_the_point(self) -> None:
        numbers = [12.34567, 101325.64, 1234567.8, -7654321.2, 98765432.1, 5, None]
        self.assertEqual(self.page.run('return arguments[0].map(value)', numbers),
                         ['12.35', '101326', '1234568', '-7654321', '98765432', '5', '–'])

    def test_text_from_outside_is_shown_as_it_is(self) -> None:
        for script, text in (('value("door_open")', 'door_open'),
                             ('eventWords({ kind: "broker", detail: { state: "topic_denied", topic: "a/b_c" } })',
                              'state topic denied, topic a/b_c'),
                             ('eventWords({ kind: "control", detail: { control: "set_mode", value: "x_y" } })', 'set mode = x_y')):
            self.assertEqual(self.page.run(f'return {script}'), text)


class ManyDevicesTests(unittest.TestCase):
    """Two hundred devices, ten readings a second each."""

    def test_many_devices_leave_the_browser_idle_time(self) -> None:
        with Gateway(PROGRAMS, MANY) as gateway, Page(gateway) as page:
            page.wait('return document.querySelectorAll(".card").length === 200')
            # CPU time of the page's thread: a loaded machine does not count.
            page.command('Performance.enable', {'timeDomain': 'threadTicks'})
            page.run('scrollTo(0, 3000)')
            time.sleep(3)
            before = metrics(page)
            time.sleep(10)
            after = metrics(page)
            length = after['Timestamp'] - before['Timestamp']
            shares = {name: (after[name] - before[name]) / length
                      for name in ('ScriptDuration', 'LayoutDuration', 'TaskDuration')}
            print({name: f'{share:.0%}' for name, share in shares.items()}, f"{after['JSHeapUsedSize'] / 1e6:.0f} MB")
            self.assertLess(shares['TaskDuration'], 0.1)
            self.assertLess(after['JSHeapUsedSize'], 100e6)
            self.assertEqual(page.errors(), [])
            page.screenshot(SCREENSHOTS / 'many.png')
            page.type('#search', 'strap-17')
            page.wait('return document.querySelectorAll(".card:not([hidden])").length === 11')
            page.run('scrollTo(0, 0)')
            page.wait(PAINTED, '[data-device=strap-17] .spark')


def metrics(page: Page) -> dict[str, float]:
    return {metric['name']: metric['value'] for metric in page.command('Performance.getMetrics', {})['metrics']}


def contrast(page: Page, *names: str) -> float:
    """Returns the WCAG 2 contrast of two colours of the style sheet."""
    lights = []
    for name in names:
        text = page.run('return getComputedStyle(document.documentElement).getPropertyValue(`--${arguments[0]}`)', name)
        parts = [int(text.strip()[index:index + 2], 16) / 255 for index in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        lights.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


if __name__ == '__main__':
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
