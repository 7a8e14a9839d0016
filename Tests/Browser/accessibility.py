"""Checks of one page for keyboards and screen readers; README.md lists them. Each returns what is wrong."""
from browser import Browser

TAB = '\ue004'
NAMED_ROLES = {'button', 'link', 'textbox', 'searchbox', 'slider', 'spinbutton', 'checkbox', 'combobox', 'tab', 'image',
               'switch', 'region', 'dialog'}


def unnamed(page: Browser) -> list[str]:
    """Parts that people operate, and regions, without an accessible name."""
    nodes = page.command('Accessibility.getFullAXTree', {})['nodes']
    return [node['role']['value'] for node in nodes
            if not node['ignored'] and node.get('role', {}).get('value') in NAMED_ROLES
            and not node.get('name', {}).get('value')]


def structure(page: Browser) -> list[str]:
    """Landmarks, headings, labels, tables, references between elements."""
    return page.run("""
        const found = [];
        const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
        const expect = (isGood, words) => { if (!isGood) found.push(words); };
        expect(document.documentElement.lang, "no language");
        expect(document.title, "no title");
        for (const name of ["header", "main", "nav[aria-label]", "h1"]) expect(all(name).length >= 1, `no ${name}`);
        expect(all("h1").length === 1, "several h1");
        let level = 1;
        for (const heading of all("h1, h2, h3, h4")) {
          const own = Number(heading.tagName[1]);
          expect(own <= level + 1, `the heading ${heading.textContent} leaves out a level`);
          level = own;
        }
        for (const field of all("input, select, textarea")) {
          expect(field.labels.length || field.ariaLabel, `no label: ${field.outerHTML.slice(0, 80)}`);
        }
        for (const table of all("table")) expect(table.querySelector("th[scope]"), "a table without headings");
        const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
        expect(new Set(ids).size === ids.length, `ids are used twice: ${ids.filter((id, index) => ids.indexOf(id) !== index)}`);
        for (const name of ["aria-controls", "aria-labelledby", "aria-describedby", "for"]) {
          for (const each of document.querySelectorAll(`[${name}]`)) {
            expect(document.getElementById(each.getAttribute(name)), `${name} leads nowhere: ${each.getAttribute(name)}`);
          }
        }
        expect(document.querySelector("[aria-live], [role=status], [role=alert]"), "changes are not announced");
        return found;
    """)


def contrast(page: Browser) -> list[str]:
    """Visible text whose contrast with its background is below 4.5 (WCAG 2.2, 1.4.3); disabled parts do not count."""
    return page.run("""
        const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
        const mixed = (front, back) => front.slice(0, 3).map((part, index) => part * (front[3] ?? 1) + back[index] * (1 - (front[3] ?? 1)));
        const light = (colour) => colour.slice(0, 3).map((part) => part / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
          .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
        const back = (element) => {
          const layers = [];
          for (let each = element; each; each = each.parentElement) layers.unshift(numbers(getComputedStyle(each).backgroundColor));
          return layers.reduce((below, layer) => mixed(layer, below), numbers(getComputedStyle(document.body).backgroundColor));
        };
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const found = new Set();
        while (texts.nextNode()) {
          const element = texts.currentNode.parentElement;
          if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest(".unseen, script, :disabled, .skip")) continue;
          const behind = back(element);
          const front = mixed(numbers(getComputedStyle(element).color), behind);
          const [one, other] = [light(front), light(behind)];
          const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
          if (ratio < 4.5) found.add(`${ratio.toFixed(2)}: ${texts.currentNode.data.trim().slice(0, 40)} (${element.className || element.tagName})`);
        }
        return [...found];
    """)


def focus_order(page: Browser, steps: int = 60) -> list[str]:
    """Focus that is invisible, hidden behind something, or not in the order of the document."""
    found = []
    page.run('document.querySelector(".skip").focus(); window.first = window.before = document.activeElement')
    for _ in range(steps):
        page.press(TAB)
        problem = page.run("""
            const element = document.activeElement;
            if (element === document.body || element === window.first) return "end";
            const style = getComputedStyle(element);
            const name = element.id || element.className || element.tagName;
            if (!element.checkVisibility()) return `invisible: ${name}`;
            if (parseFloat(style.outlineWidth) < 2 || style.outlineStyle === "none") return `no outline: ${name}`;
            const isAfter = !window.before?.isConnected || (window.before.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
            if (!isAfter) return `out of order: ${name}`;
            window.before = element;
            return null;
        """)
        if problem == 'end':
            break
        if problem:
            found.append(problem)
    return found


def small_targets(page: Browser) -> list[str]:
    """Buttons, links outside of text and fields below 24 by 24 pixels (WCAG 2.2, 2.5.8)."""
    return page.run("""
        return [...document.querySelectorAll("button, input, select, textarea, nav a, [role=tab]")]
          .filter((each) => each.checkVisibility() && !each.closest(".unseen, .trail, .findings") && each.type !== "checkbox")
          .filter((each) => { const { width, height } = each.getBoundingClientRect(); return width < 24 || height < 23.5; })
          .map((each) => each.outerHTML.slice(0, 80));
    """)
