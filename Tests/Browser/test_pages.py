"""The pages beside the devices, in a real browser, on a gateway with simulated peripherals.

    test_pages.py PROGRAMS SCREENSHOTS
"""
import sys
import time
import unittest

import accessibility
from browser import Browser
from gateway import Gateway
from test_dashboard import PAINTED, PROGRAMS, SCREENSHOTS, Page

HOME = """\
peripherals:
  - {name: strap, count: 2, kind: heart-rate, address: 'C0:FF:EE:00:00:01', rate: 5, rr: 1, battery: 97}
  - {name: dial, kind: number-service, address: 'C0:FF:EE:00:00:10', value: 42}
  - name: hygrometer
    kind: beacon
    address: C0:FF:EE:00:00:31
    advertise:
      name: GVH5075_0123
      manufacturer_data: {0xEC88: [0003215D6400]}
  - name: mark
    kind: beacon
    address: C0:FF:EE:00:00:35
    advertise:
      name: <b onclick=x>Mark
      manufacturer_data: {0x0499: [0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F]}
"""

METER = """\
timing: quick
peripherals:
  - name: meter
    kind: recorder
    address: C0:FF:EE:00:01:01
    records: {form: glucose, count: 3000, capacity: 5000, every: 10m, speed: 500}
"""

PAGES = ('', 'device/strap-1', 'device/dial', 'add', 'configuration', 'log', 'checks')
ENTER, LEFT, ESCAPE = '\ue007', '\ue012', '\ue00c'


class PageTests(unittest.TestCase):
    """A person who sets up a gateway."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = cls.enterClassContext(Gateway(PROGRAMS, HOME))

    # 503: the gateway was reading history for others, and the page asks again.
    accepted_errors = ('status of 503',)

    def page(self, *size: int, dark: bool = False) -> Page:
        page = self.enterContext(Page(self.gateway, *size, dark=dark))
        page.run('sessionStorage.setItem("gattherd-token", arguments[0])', self.gateway.token)
        self.addCleanup(lambda: self.assertEqual(
            [each for each in page.errors() if not any(words in each for words in self.accepted_errors)], []))
        return page

    def go(self, page: Page, name: str) -> None:
        """Opens a page and waits for its content."""
        page.run('location.hash = arguments[0]', name)
        page.wait({
            '': 'return document.querySelectorAll(".card .value").length > 3',
            'add': 'return document.querySelectorAll("#add tbody tr").length > 1',
            'configuration': 'return document.querySelector(".findings li") && document.querySelector(".editor").value',
            'log': 'return document.querySelectorAll("#log .list li").length > 2',
            'checks': 'return document.querySelectorAll("#checks .findings li").length > 2',
        }.get(name, 'return document.querySelector("#detail .readout")?.innerText.includes("sample")'))

    def edit(self, page: Page, before: str, after: str) -> None:
        """Replaces text in the editor as a person would, and waits for the check."""
        page.run("""
            const editor = document.querySelector(".editor");
            editor.value = editor.value.replace(...arguments);
            editor.dispatchEvent(new Event("input"));
            document.querySelector(".findings").replaceChildren();
        """, before, after)
        page.wait('return document.querySelector(".findings li")')

    def apply(self, page: Page) -> None:
        page.wait('return !document.querySelector(".configuration .primary").disabled')
        page.click('.configuration .primary')
        page.wait('return document.querySelector("#toasts").innerText.includes("Saved")')
        page.run('document.querySelector("#toasts").replaceChildren()')

    def name_file(self, page: Page, name: str) -> None:
        """Asks for a new file with the keyboard."""
        page.wait('return !document.querySelector("#configuration header button").disabled')
        page.run('document.querySelector("#configuration header button").focus()')
        page.press(ENTER)
        page.wait('return document.activeElement.id === "new-file-name"')
        page.press(*name, ENTER)

    # Configuration, and a new device

    def test_a_device_leaves_the_configuration_and_is_added_from_a_scan(self) -> None:
        # A name that is taken is a conflict.
        self.accepted_errors += ('status of 409',)
        page = self.page()
        self.go(page, 'configuration')
        line = page.run(r'return document.querySelector(".editor").value.match(/.*name: mark,.*\n/)[0]')
        self.edit(page, line, '')
        self.assertIn('- ' + line.strip(), page.text('.diff').replace('-   ', '- '))
        self.apply(page)
        page.run('location.hash = ""')
        page.wait('return !document.querySelector("[data-device=mark]")')
        self.go(page, 'add')
        row = 'tr[data-address="C0:FF:EE:00:00:35"]'
        page.wait('return document.querySelector(`${arguments[0]} button`)', row)
        self.assertIn('<b onclick=x>Mark', page.text(row))
        self.assertIn('RuuviTag', page.text(row))
        # What turns the direction of the text in a name must not turn the address after it.
        self.assertEqual(page.run('return getComputedStyle(document.querySelector(`${arguments[0]} th span`)).unicodeBidi', row), 'isolate')
        page.screenshot(SCREENSHOTS / 'add.png')
        page.click(row + ' button')
        page.wait('return document.querySelector(".yaml").innerText.includes("ruuvi")')
        page.run('document.querySelector(".proposal input").value = "strap-1"')
        page.type('.proposal label:nth-of-type(2) input', 'Sauna')
        page.wait('return document.querySelector(".problem").innerText.includes("strap-1")')
        page.run("""
            const input = document.querySelector(".proposal input");
            input.value = "sauna";
            input.dispatchEvent(new Event("input", { bubbles: true }));
        """)
        page.wait("""return document.querySelector(".yaml").innerText.includes("title: 'Sauna'")""")
        page.screenshot(SCREENSHOTS / 'add-proposal.png')
        page.click('.proposal .primary')
        page.wait('return /First values: temperature -?[0-9.]+/.test(document.querySelector(".proposal").innerText)')
        page.screenshot(SCREENSHOTS / 'add-done.png')
        self.assertIn('name: sauna', (self.gateway.folder / 'work/gattherd.d/sauna.yaml').read_text())
        page.run('location.hash = ""')
        page.wait('return document.querySelector("[data-device=sauna] .open")?.innerText === "Sauna"')

    def test_a_mistake_is_marked_and_cannot_be_applied(self) -> None:
        page = self.page()
        self.go(page, 'configuration')
        self.edit(page, 'log:', 'lgo:')
        page.wait('return document.querySelector(".findings").innerText.includes("did you mean \'log\'")')
        self.assertRegex(page.text('.findings'), r'gattherd\.yaml:\d+:1 unknown key \'lgo\'')
        self.assertTrue(page.run('return document.querySelector(".configuration .primary").disabled'))
        page.click('.findings button')
        marked = page.run("""
            const { value, selectionStart, selectionEnd } = document.querySelector(".editor");
            return value.slice(selectionStart, selectionEnd);
        """)
        self.assertEqual(marked, 'lgo')
        page.screenshot(SCREENSHOTS / 'configuration-mistake.png')
        self.edit(page, 'lgo:', 'log:')
        self.assertEqual(page.text('.findings'), 'No mistakes.')
        self.assertEqual(page.text('.diff'), '')

    def test_a_new_file_is_named_checked_applied_and_deleted(self) -> None:
        path = self.gateway.folder / 'work/gattherd.d/alerts.yaml'
        self.addCleanup(path.unlink, missing_ok=True)
        page = self.page()
        self.go(page, 'configuration')
        self.name_file(page, 'alerts')
        page.wait('return document.querySelector("#new-file-problem").innerText.includes("end in .yaml")')
        for check in (accessibility.unnamed, accessibility.structure, accessibility.contrast, accessibility.small_targets):
            self.assertEqual(check(page), [], check.__name__)
        page.screenshot(SCREENSHOTS / 'new-file.png')
        page.press(ESCAPE)
        page.wait('return document.activeElement.innerText === "New file…"')
        self.assertNotIn('alerts', page.run('return location.hash') + page.text('.files'))
        self.name_file(page, 'alerts.yaml')
        page.wait('return document.activeElement.matches(".editor")')
        self.assertIn('New file gattherd.d/alerts.yaml', page.text('.configuration'))
        rule = 'alerts:\n  - {name: beating, device: strap-1, metric: heart_rate, abov: 1}\n'
        self.edit(page, '', rule)
        page.wait('return document.querySelector(".findings").innerText.includes("\'abov\'")')
        self.assertTrue(page.run('return document.querySelector(".configuration .primary").disabled'))
        self.edit(page, 'abov', 'above')
        self.assertEqual(page.text('.findings'), 'No mistakes.')
        page.wait('return document.querySelector(".diff").innerText.includes("Takes effect at once.")')
        self.assertEqual(page.run('return document.querySelectorAll(".diff .added").length'), 2)
        self.assertFalse(page.run('return document.querySelector(".diff .removed")'))
        self.assertFalse(path.exists())
        page.screenshot(SCREENSHOTS / 'configuration-new.png')
        self.apply(page)
        rule = rule.replace('abov', 'above')
        self.assertEqual(path.read_text(), rule)
        self.assertEqual(page.text('.files a[aria-current]'), 'gattherd.d/alerts.yaml')
        alert = 'return document.querySelector("[data-tile=\'Alert beating of strap-1\']")'
        page.wait(alert)
        self.edit(page, rule, '')
        page.wait('return document.querySelector(".diff").innerText.includes("the file is deleted")')
        self.apply(page)
        page.wait('return document.querySelector(".files a[aria-current]")?.innerText === "gattherd.yaml" && document.querySelector(".editor").value')
        self.assertFalse(path.exists())
        self.assertNotIn('alerts', page.text('.files'))
        page.wait(alert.replace('return ', 'return !'))
        # An open dialog that another page hides would keep everything from being used.
        self.name_file(page, 'alerts')
        page.run('location.hash = "log"')
        page.wait('return !document.querySelector("#configuration dialog").open')

    def test_a_change_that_needs_a_restart_says_so(self) -> None:
        page = self.page(dark=True)
        self.go(page, 'configuration')
        self.edit(page, 'history:\n', 'history:\n  max_size: 1GiB\n')
        page.wait('return document.querySelector(".diff").innerText.includes("Restart needed for history")')
        page.screenshot(SCREENSHOTS / 'configuration-dark.png')
        self.apply(page)
        page.wait('return document.querySelector(".state-line").innerText.includes("Restart needed for history")')
        self.assertIn('On the host: systemctl restart gattherd', page.text('.state-line'))
        self.assertTrue(page.run('return document.querySelector(".state-line button").hidden'))
        self.edit(page, '  max_size: 1GiB\n', '')
        self.apply(page)
        page.wait('return document.querySelector(".state-line").hidden')

    def test_a_restart_is_offered_where_something_starts_the_daemon_again(self) -> None:
        page = self.page()
        page.run("""
            const sent = window.fetch;
            window.restarts = [];
            window.confirm = (question) => restarts.push(question);
            window.fetch = async (path, options) => {
              if (path === "api/v1/restart") {
                restarts.push(options.method);
                return new Response("{}", { status: 202 });
              }
              const response = await sent(path, options);
              if (!String(path).startsWith("api/v1/configuration?")) return response;
              return new Response(JSON.stringify({ ...await response.json(), can_restart: true }));
            };
        """)
        self.go(page, 'configuration')
        self.edit(page, 'history:\n', 'history:\n  max_size: 1GiB\n')
        self.apply(page)
        page.wait('return document.querySelector(".state-line button").checkVisibility()')
        self.assertEqual(page.text('.state-line').split(), 'Restart needed for history. Restart'.split())
        page.screenshot(SCREENSHOTS / 'restart.png')
        page.click('.state-line button')
        page.wait('return restarts.length === 2')
        self.assertEqual(page.run('return restarts[1]'), 'POST')
        self.edit(page, '  max_size: 1GiB\n', '')
        self.apply(page)
        page.wait('return document.querySelector(".state-line").hidden')

    # A device

    def test_a_device_gets_a_name_for_people_and_keeps_its_history(self) -> None:
        page = self.page()
        self.go(page, 'device/strap-2')
        page.click('section .edit summary')
        for index, text in enumerate(('Anna\'s "strap" ${HOME} <b>', 'Gym', 'new battery'), 1):
            page.type(f'.edit label:nth-of-type({index}) input', text)
        page.click('.edit .primary')
        page.wait('return document.querySelector("#detail h2").innerText === arguments[0]', 'Anna\'s "strap" ${HOME} <b>')
        page.wait('return document.querySelector(".note").innerText === "new battery"')
        page.wait('return /mean .* samples/.test(document.querySelector("#detail .readout").innerText)')
        page.screenshot(SCREENSHOTS / 'device-named.png')
        page.run('history.back()')
        page.wait('return document.querySelector("[data-device=strap-2] .open").innerText.startsWith("Anna")')
        page.run('document.querySelector("#arrangement [type=checkbox]").click()')
        groups = page.run('return [...document.querySelectorAll("li.group")].map((each) => each.innerText)')
        self.assertEqual(groups, ['Gym', 'No area'])
        page.screenshot(SCREENSHOTS / 'groups.png')
        page.click('[data-view=list]')
        page.wait('return /bpm/.test(document.querySelector("tr[data-device=strap-2]").innerText)')
        page.screenshot(SCREENSHOTS / 'list.png')

    def test_a_device_explains_its_state(self) -> None:
        page = self.page()
        self.go(page, 'device/dial')
        page.click('#detail details summary')
        page.wait('return document.querySelector(".why li")')
        self.assertIn('ready', page.text('#detail details [role=status]'))
        page.screenshot(SCREENSHOTS / 'why.png')

    def test_a_chart_shows_several_metrics_and_is_zoomed_by_mouse_and_keyboard(self) -> None:
        page = self.page()
        self.go(page, 'device/strap-1')
        page.click('[data-metric=battery_level]')
        page.wait('return /heart rate mean .* battery level mean 97/.test(document.querySelector(".readout").innerText)')
        page.wait(PAINTED, '.chart')
        page.click('.ranges button')
        page.run('document.querySelector(".chart").focus()')
        page.press(LEFT)
        page.wait('return /: heart rate [0-9.]+.bpm.*, battery level 97/.test(document.querySelector(".readout").innerText)')
        page.press('+')
        page.wait('return document.querySelector(".ranges [aria-pressed=true]") === null')
        page.press(ESCAPE)
        page.wait('return document.querySelector(".ranges [aria-pressed=true]")?.innerText === "5 min"')
        left, top, width = page.run("""
            document.querySelector(".chart").scrollIntoView();
            const { left, top, width } = document.querySelector(".chart").getBoundingClientRect();
            return [left, top, width];
        """)
        for kind, share in (('mousePressed', 0.7), ('mouseMoved', 0.8), ('mouseReleased', 0.9)):
            page.command('Input.dispatchMouseEvent', {
                'type': kind, 'x': left + width * share, 'y': top + 80, 'button': 'left', 'clickCount': 1,
                'buttons': 0 if kind == 'mouseReleased' else 1})
        page.wait('return document.querySelector(".tools-line button").checkVisibility()')
        page.screenshot(SCREENSHOTS / 'chart-zoomed.png')

    def test_a_chart_is_saved_as_csv_and_png(self) -> None:
        page = self.page()
        self.go(page, 'device/strap-1')
        page.run("""
            window.saved = [];
            URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push([blob.type, text])); return "#device/strap-1"; };
            HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        """)
        for index in (2, 3):
            page.click(f'.tools-line button:nth-of-type({index})')
        page.wait('return saved.length === 4')
        saved = page.run('return saved')
        self.assertIn('strap-1.csv', saved)
        self.assertIn('strap-1.png', saved)
        table = next(text for kind, text in (each for each in saved if isinstance(each, list)) if kind == 'text/csv')
        self.assertRegex(table.splitlines()[0], 'time')
        self.assertRegex(table.splitlines()[1], r'^"\d{4}-.*Z","strap-1","heart_rate","bpm",\d+,')

    def test_the_back_button_and_addresses_work(self) -> None:
        page = self.page()
        page.open(self.gateway.url + '#device/dial')
        page.wait('return document.querySelector("#detail h2")?.innerText === "dial"')
        self.assertIn('dial', page.run('return document.title'))
        page.click('[data-nav=log]')
        page.wait('return !document.querySelector("#log").hidden')
        self.assertEqual(page.run('return document.activeElement.id'), 'main')
        page.run('history.back()')
        page.wait('return document.querySelector("#detail h2")?.innerText === "dial"')
        page.run('location.hash = "device/none"')
        page.wait('return document.querySelector("#detail").innerText.includes("There is no device none")')

    def test_a_control_is_set_on_the_card(self) -> None:
        page = self.page()
        number = '#card-dial-number + input'
        page.wait('return !document.querySelector(arguments[0]).disabled', number)
        # A number without the focus would follow the device again before the keys.
        page.run('const input = document.querySelector(arguments[0]); input.focus(); input.value = ""', number)
        page.type(number, '77' + ENTER)
        page.wait('return document.querySelector("[data-device=dial] .value").innerText === "77"')

    def test_a_device_that_only_advertises_has_no_button_for_its_link(self) -> None:
        page = self.page()
        page.state('hygrometer', 'Ready')
        hidden = 'return document.querySelector(arguments[0]).hidden'
        page.wait(hidden, '[data-device=hygrometer] .actions button')
        self.assertFalse(page.run(hidden, '[data-device=dial] .actions button'))
        page.show('hygrometer')
        page.wait(hidden, '#detail header button')
        page.run('location.hash = "device/dial"')
        page.wait('return document.querySelector("#detail h2")?.innerText === "dial"')
        self.assertFalse(page.run(hidden, '#detail header button'))

    # Log and checks

    def test_the_log_is_shown_by_level_and_device(self) -> None:
        page = self.page()
        self.go(page, 'log')
        self.assertIn('started', page.text('#log'))
        page.run('location.hash = "log/strap-1"')
        page.wait('return !document.querySelector("#log").innerText.includes("started")')
        page.wait('return document.querySelector("#log .list").innerText.includes("strap-1")')
        page.screenshot(SCREENSHOTS / 'log.png')

    def test_the_checks_name_remedies(self) -> None:
        page = self.page()
        self.go(page, 'checks')
        self.assertRegex(page.text('#checks .hint[role=status]'), r'^\d+ errors?, \d+ warnings?$')
        self.assertTrue(page.run('return document.querySelector("#checks .remedy")'))
        page.screenshot(SCREENSHOTS / 'checks.png')

    # Everybody can use it

    def test_every_page_passes_the_checks_of_the_list(self) -> None:
        for dark in (False, True):
            page = self.page(dark=dark)
            for name in PAGES:
                with self.subTest(name=name or 'devices', dark=dark):
                    self.go(page, name)
                    for check in (accessibility.unnamed, accessibility.structure, accessibility.contrast,
                                  accessibility.small_targets, accessibility.focus_order):
                        self.assertEqual(check(page), [], check.__name__)

    def test_no_page_scrolls_sideways_on_a_small_screen(self) -> None:
        for width in (320, 390):
            page = self.page(width, 800, dark=width == 390)
            for name in PAGES:
                with self.subTest(name=name or 'devices', width=width):
                    self.go(page, name)
                    self.assertLessEqual(page.run('return document.documentElement.scrollWidth'), width)
                    time.sleep(0.3)
                    page.screenshot(SCREENSHOTS / f'phone-{width}-{name.replace("/", "-") or "devices"}.png')


class DownloadTests(unittest.TestCase):
    """A device that has stored records."""

    def test_a_download_of_stored_records_is_shown(self) -> None:
        with Gateway(PROGRAMS, METER) as gateway, Page(gateway) as page:
            page.show('meter')
            records = '[aria-label="Stored records"]'
            page.wait('return /record \\d+|complete/.test(document.querySelector(arguments[0]).innerText)', records)
            page.screenshot(SCREENSHOTS / 'records.png')
            page.wait('return /complete, [\\d,]+ new records/.test(document.querySelector(arguments[0]).innerText)', records)
            self.assertTrue(page.run('return document.querySelector("progress").hidden'))


class ModuleTests(unittest.TestCase):
    """Functions of single modules, in an empty document."""

    @classmethod
    def setUpClass(cls) -> None:
        gateway = cls.enterClassContext(Gateway(PROGRAMS, 'peripherals: [{name: dial, kind: number-service, address: "C0:FF:EE:00:00:10"}]\n'))
        cls.page = cls.enterClassContext(Browser(800, 600))
        cls.page.open(gateway.url + 'healthz')
        cls.page.run("""
            const url = arguments[0];
            return (async () => {
              for (const name of ["diff", "export", "router", "axes", "order", "downloads", "add", "configuration", "newfile"]) Object.assign(window, await import(`${url}${name}.js`));
            })();
        """, gateway.url)

    def test_a_comparison_shows_what_differs_and_its_surroundings(self) -> None:
        lines = [f'line {index}' for index in range(20)]
        changed = lines[:9] + ['new', 'more'] + lines[10:]
        found = self.page.run('return diff(arguments[0], arguments[1])', '\n'.join(lines), '\n'.join(changed))
        self.assertEqual([sign for sign, _ in found], ['…', ' ', ' ', ' ', '-', '+', '+', ' ', ' ', ' ', '…'])
        self.assertEqual(found[4:7], [['-', 'line 9'], ['+', 'new'], ['+', 'more']])
        self.assertEqual(self.page.run('return diff("a\\nb", "a\\nb")'), [])
        both = self.page.run('return lines("a\\nb\\nc\\nd", "b\\nx\\nd\\ne")')
        self.assertEqual(''.join(sign for sign, _ in both), '- -+ +')
        for before, after, signs in (('', '', ' '), ('', 'a', '+'), ('', 'a\n', '+ '), ('a\nb', '', '--'), ('a\n', '', '- ')):
            found = self.page.run('return lines(arguments[0], arguments[1])', before, after)
            self.assertEqual(''.join(sign for sign, _ in found), signs, (before, after))

    def test_names_of_new_files_have_the_rule_of_the_gateway(self) -> None:
        problem = 'return nameProblem(arguments[0], ["gattherd.yaml", "gattherd.d/strap.yaml"])'
        for name in ('alerts.yaml', 'A.b-1_2.yaml', 'gattherd.yaml', 'a' * 95 + '.yaml'):
            self.assertIsNone(self.page.run(problem, name), name)
        for name, words in (('', 'end in .yaml'), ('alerts.yml', 'end in .yaml'), ('a/b.yaml', 'letters'), ('ä.yaml', 'letters'),
                            ('.yaml', 'dot'), ('.a.yaml', 'dot'), ('a' * 96 + '.yaml', '100'), ('strap.yaml', 'of this name')):
            self.assertIn(words, self.page.run(problem, name), name)

    def test_no_file_is_added_where_the_gateway_cannot_write(self) -> None:
        states = self.page.run("""
            document.body.innerHTML = '<div id="configuration"></div><div id="toasts"></div>';
            const list = { files: ["gattherd.yaml"] };
            const main = { text: "gateway: lab", version: "1" };
            window.fetch = async (path) => new Response(JSON.stringify(path.includes("/file?") ? main : list));
            const page = new ConfigurationPage(Object.assign(new EventTarget(), { status: {} }), (action) => action());
            const states = [];
            return (async () => {
              for (const obstacle of [undefined, "the daemon cannot write"]) {
                list.obstacle = obstacle;
                await page.open(null);
                clearTimeout(page.timer);
                states.push([page.add.disabled, page.addReason.textContent, page.isNew("gattherd.d/a.yaml"), page.isNew("gattherd.yaml")]);
              }
              return states;
            })();
        """)
        self.assertEqual(states, [[False, '', True, False], [True, 'No new files: the daemon cannot write', False, False]])

    def test_saved_texts_are_no_formulas(self) -> None:
        table = self.page.run("""
            return csv("=strap", [{ metric: 'a"b', unit: "+1", rows: [{ time: 0, n: 1, min: -1, mean: -1, max: 2.5 }] }]);
        """)
        self.assertEqual(table.splitlines()[1], '"1970-01-01T00:00:00.000Z","\'=strap","a""b","\'+1",1,-1,-1,2.5,""')

    def test_a_saved_value_has_its_own_time(self) -> None:
        table = self.page.run("""
            const row = (time, members) => ({ time, n: 1, min: 7, mean: 7, max: 7, ...members });
            return csv("strap", [{ metric: "level", unit: null, rows: [row(0, { isCarried: true }), row(60000)] }]);
        """)
        self.assertEqual([line.split(',')[0] for line in table.splitlines()[1:]], ['"1970-01-01T00:01:00.000Z"'])

    def test_the_progress_of_a_download_is_shown(self) -> None:
        shown = self.page.run("""
            const downloads = new Downloads();
            const running = { stream: "log", state: "downloading", since: "2026-11-21T03:01:00Z", done: 812, new: 0 };
            const state = () => [downloads.element.hidden, downloads.element.querySelector("span")?.innerText,
                downloads.element.querySelector("progress")?.value ?? null];
            const states = [];
            for (const list of [[], [running], [{ ...running, total: 1000 }], [{ ...running, state: "failed", detail: "no answer", new: 5 }]]) {
              downloads.update(list);
              states.push(state());
            }
            return states;
        """)
        self.assertEqual(shown[:3], [[True, None, None], [False, 'record 812', 0], [False, 'record 812 of 1000', 812]])
        self.assertRegex(shown[3][1], r'^failed, no answer, 5 new records, ')

    def test_a_proposal_is_of_what_is_known_by_now(self) -> None:
        found = self.page.run("""
            document.body.innerHTML = '<div id="add"></div>';
            window.fetch = () => new Promise(() => {});
            const page = new AddPage(new EventTarget(), (action) => action());
            page.open();
            page.only.checked = false;
            const peripheral = { address: "C0:FF:EE:00:00:35", rssi: -60, name: null, profiles: [], proposal: "device" };
            page.show([peripheral]);
            const button = document.querySelector("#add tbody button");
            const model = "RuuviTag";
            page.show([{ ...peripheral, model, profiles: [{ profile: "ruuvi", name: "Ruuvi", named: true }], proposal: "ruuvitag" }]);
            button.click();
            page.close();
            return [button.isConnected, button.getAttribute("aria-label"), page.fields.name.value, page.fields.profile.value];
        """)
        self.assertEqual(found, [True, 'Add RuuviTag', 'ruuvitag', 'ruuvi'])

    def test_the_editor_belongs_to_the_file_that_is_shown(self) -> None:
        states = self.page.run("""
            document.body.innerHTML = '<div id="configuration"></div><div id="toasts"></div>';
            const held = {};
            const answer = (name, body) => held[name](new Response(JSON.stringify(body)));
            window.fetch = (path) => {
              const file = new URLSearchParams(path.split("?")[1]).get("file");
              if (path.startsWith("api/v1/configuration?")) return Promise.resolve(new Response(JSON.stringify({ files: ["a", "b", "c"] })));
              return new Promise((done) => { held[file ?? path.split("/").pop()] = done; });
            };
            const later = () => new Promise((done) => { setTimeout(done, 20); });
            const model = Object.assign(new EventTarget(), { status: {} });
            const page = new ConfigurationPage(model, async (action) => { try { return await action(); } catch { return null; } });
            const states = [];
            const record = () => states.push([page.file, page.version, page.editor.value, page.editor.disabled]);
            return (async () => {
              page.open("a");
              await later();
              answer("a", { text: "of a", version: "1" });
              await later();
              record();
              page.open("b");
              await later();
              record();
              page.open("c");
              await later();
              answer("c", { text: "of c", version: "3" });
              await later();
              answer("b", { text: "of b", version: "2" });
              await later();
              record();
              page.editor.value = "new c";
              window.confirm = () => true;
              page.save();
              await later();
              page.open("a");
              await later();
              answer("file", { version: "4", restart_needed: [] });
              await later();
              record();
              answer("a", { text: "of a", version: "1" });
              await later();
              record();
              clearTimeout(page.timer);
              return states;
            })();
        """)
        self.assertEqual(states, [
            ['a', '1', 'of a', False], [None, None, '', True], ['c', '3', 'of c', False], [None, None, '', True],
            ['a', '1', 'of a', False]])

    def test_the_line_breaks_of_a_file_stay(self) -> None:
        sent = self.page.run("""
            document.body.innerHTML = '<div id="configuration"></div><div id="toasts"></div>';
            const texts = { windows: "a: 1\\r\\nb: 2\\r\\n", unix: "a: 1\\nb: 2\\n" };
            const sent = [];
            window.fetch = async (path, options) => {
              const file = new URLSearchParams(path.split("?")[1]).get("file");
              if (options.body) sent.push(JSON.parse(options.body).text);
              const other = options.body ? { version: "2", restart_needed: [], findings: [] } : { files: Object.keys(texts) };
              return new Response(JSON.stringify(file ? { text: texts[file], version: "1" } : other));
            };
            const model = Object.assign(new EventTarget(), { status: {} });
            const page = new ConfigurationPage(model, (action) => action());
            return (async () => {
              for (const file of Object.keys(texts)) {
                await page.open(file);
                page.editor.value += "c: 3\\n";
                await page.check();
                await page.save();
                clearTimeout(page.timer);
              }
              return sent;
            })();
        """)
        windows, unix = 'a: 1\r\nb: 2\r\nc: 3\r\n', 'a: 1\nb: 2\nc: 3\n'
        self.assertEqual(sent, [windows, windows, unix, unix])

    def test_a_deleted_file_is_left_but_not_another_page(self) -> None:
        hashes = self.page.run("""
            document.body.innerHTML = '<div id="configuration"></div><div id="toasts"></div>';
            window.fetch = async (path, options) => {
              const other = options.body ? { restart_needed: [] } : { files: ["a", "b"] };
              return new Response(JSON.stringify(path.includes("file=") ? { text: "b: 1", version: "1" } : other));
            };
            const model = Object.assign(new EventTarget(), { status: {} });
            const page = new ConfigurationPage(model, (action) => action());
            return (async () => {
              const hashes = [];
              for (const hash of ["#configuration/b", "#log"]) {
                location.hash = hash;
                await page.open("b");
                page.editor.value = "";
                await page.save();
                clearTimeout(page.timer);
                hashes.push(location.hash);
              }
              location.hash = "";
              return hashes;
            })();
        """)
        self.assertEqual(hashes, ['#configuration/a', '#log'])

    def test_addresses_hold_any_name(self) -> None:
        for name in ('strap', 'a/b', 'ä %41 #'):
            self.assertEqual(self.page.run('return parsed(address("device", arguments[0]))', name), {'page': 'device', 'subject': name})
        for hash_ in ('', '#', '#unknown/x', '#devices'):
            self.assertEqual(self.page.run('return parsed(arguments[0]).page', hash_), 'devices')
        self.assertIsNone(self.page.run('return parsed("#device/%").subject'))

    def test_summaries_fit_the_range(self) -> None:
        for length, every in ((300, '1s'), (3600, '15s'), (86400, '5m'), (7 * 86400, '30m'), (365 * 86400, '1d')):
            self.assertEqual(self.page.run('return intervalFor(arguments[0] * 1000)[0]', length), every)

    def test_axes_end_for_every_number(self) -> None:
        for low, high in ((1e17, 1e17 + 16), (0, 0), (-5, -5), (1e308, 1.7e308), (1e-300, 2e-300)):
            self.assertLessEqual(self.page.run('return valueAxis(...arguments).marks.length', low, high), 12)
        self.assertEqual(self.page.run('return valueAxis(60, 179).marks'), [50, 100, 150, 200])

    def test_days_begin_at_midnight_before_and_after_a_change_of_the_clocks(self) -> None:
        marks = self.page.run("""
            const { getTimezoneOffset } = Date.prototype;
            Date.prototype.getTimezoneOffset = function () { return this < Date.UTC(2026, 2, 29, 1) ? -60 : -120; };
            try {
              return timeMarks(Date.UTC(2026, 2, 27), Date.UTC(2026, 2, 31), 400).map(([time]) => new Date(time).toISOString().slice(5, 16));
            } finally {
              Date.prototype.getTimezoneOffset = getTimezoneOffset;
            }
        """)
        self.assertEqual(marks, ['03-27T23:00', '03-28T23:00', '03-29T22:00', '03-30T22:00'])

    def test_the_hour_that_the_clocks_repeat_has_marks(self) -> None:
        marks = self.page.run("""
            const { getTimezoneOffset } = Date.prototype;
            Date.prototype.getTimezoneOffset = function () { return this < Date.UTC(2026, 9, 25, 1) ? -120 : -60; };
            try {
              return timeMarks(Date.UTC(2026, 9, 25), Date.UTC(2026, 9, 25, 2), 400).map(([time]) => new Date(time).toISOString().slice(11, 16));
            } finally {
              Date.prototype.getTimezoneOffset = getTimezoneOffset;
            }
        """)
        self.assertEqual(marks, ['00:00', '00:30', '01:00', '01:30', '02:00'])

    def test_the_hour_after_midnight_is_00_in_every_locale(self) -> None:
        self.page.command('Emulation.setLocaleOverride', {'locale': 'en-US'})
        self.addCleanup(self.page.command, 'Emulation.setLocaleOverride', {})
        time, mark = self.page.run("""
            const [today, day] = [new Date().setHours(0, 5, 0, 0), new Date(2026, 0, 5, 0, 10).getTime()];
            return import(`${location.origin}/words.js?american`).then(({ moment }) =>
              [moment(today), timeMarks(day, day + 1800000, 400)[0][1]]);
        """)
        self.assertRegex(time, '(^| )00:05:00$')
        self.assertEqual(mark, '00:10')

    def test_devices_are_sorted_and_grouped(self) -> None:
        names = self.page.run("""
            const device = (name, members) => ({ name, label: name, area: null, rssi: null, lastHeard: 0, battery: null, ...members });
            const all = [device("b", { rssi: -90, area: "Gym" }), device("a10"), device("a9", { rssi: -40, battery: 50, lastHeard: 5 }), device("c", { battery: 9 })];
            const arrangement = new Arrangement(document.createElement("div"), () => {});
            const by = (order, isGrouped = false) => {
              arrangement.choose({ order, isGrouped });
              return arrangement.groups(all).map(([area, devices]) => [area, devices.map((each) => each.name).join(" ")]);
            };
            return [by("name"), by("signal"), by("heard"), by("battery"), by("name", true)];
        """)
        self.assertEqual(names, [
            [[None, 'a9 a10 b c']], [[None, 'a9 b a10 c']], [[None, 'a9 a10 b c']], [[None, 'c a9 a10 b']],
            [['Gym', 'b'], ['No area', 'a9 a10 c']]])


if __name__ == '__main__':
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
