"""Tables of measurements: printed for people, and written to a page between comments.

A section of the page looks like this; a new run of its part replaces the lines between the comments.

    <!-- idle: written by `make bench BENCH=idle` -->
    <!-- end of idle -->
"""
import dataclasses
import os
import pathlib
import platform
import re
import sys

WIDTH = 11


@dataclasses.dataclass
class Table:
    """Measured values by row. `columns` are the quantities with their units."""

    title: str
    corner: str
    columns: dict[str, str]
    rows: dict[str, list[float | None]]
    # True if the rows are compared with the first one, which is gattherd's.
    is_comparison: bool = False

    def print(self) -> None:
        print(f'\n{self.title}')
        if self.is_comparison:
            self.print_rows(list(self.columns), {name: self.ratios(values) for name, values in self.rows.items()})
        measured = {name: [digits(value) for value in values] for name, values in self.rows.items()}
        self.print_rows(self.headings(), measured)

    def print_rows(self, headings: list[str], rows: dict[str, list[str]]) -> None:
        first = max(len(name) for name in [*rows, self.corner]) + 2
        widths = [max(WIDTH, len(heading) + 2) for heading in headings]
        for name, cells in {self.corner: headings, **rows}.items():
            print(name.ljust(first) + ''.join(cell.rjust(width) for cell, width in zip(cells, widths)), flush=True)
        print()

    def headings(self) -> list[str]:
        return [f'{name}, {unit}' if unit else name for name, unit in self.columns.items()]

    def ratios(self, values: list[float | None]) -> list[str]:
        """The multiples of the first row.

        >>> Table('', '', {}, {'ours': [2.0, 0.0], 'theirs': [5.0, 1.0]}).ratios([5.0, None])
        ['2.5 ×', '-']
        """
        ours = next(iter(self.rows.values()))
        return [f'{value / own:.3g} ×' if value is not None and own else '-' for value, own in zip(values, ours)]

    def markdown(self) -> list[str]:
        """The table with measured values, and with ratios for the rows after the first of a comparison.

        >>> table = Table('Idle', 'collector', {'CPU': '%'}, {'gattherd': [0.5], 'C': [1.0]}, is_comparison=True)
        >>> print(*table.markdown(), sep='\\n')
        | collector | CPU, % |
        | --- | --- |
        | gattherd | 0.5 |
        | C | 1 (2 ×) |
        >>> print(Table('', 'layout', {}, {'series << 42 | ms': []}).markdown()[-1])
        | series << 42 \\| ms |
        """
        lines = [row([self.corner, *self.headings()]), row(['---'] * (len(self.columns) + 1))]
        for number, (name, values) in enumerate(self.rows.items()):
            cells = [digits(value) for value in values]
            if self.is_comparison and number > 0:
                ratios = zip(cells, self.ratios(values))
                cells = [cell if ratio == '-' else f'{cell} ({ratio})' for cell, ratio in ratios]
            lines.append(row([name, *cells]))
        return lines


def row(cells: list[str]) -> str:
    """A row of a Markdown table; bars in cells are escaped."""
    escaped = [cell.replace('|', '\\|') for cell in cells]
    return f'| {" | ".join(escaped)} |'


def digits(number: float | None) -> str:
    """A number with three significant digits.

    >>> digits(0.01234), digits(17.66), digits(999.6), digits(20000.4), digits(None)
    ('0.0123', '17.7', '1000', '20000', '-')
    """
    return '-' if number is None else f'{number:.3g}' if abs(number) < 999.5 else f'{number:.0f}'


def machine() -> str:
    """The number of cores and the processor; the host's name stays out of the page."""
    model = re.search(r'^(?:model name|Model)\s*:\s*(.+)$', pathlib.Path('/proc/cpuinfo').read_text(), re.M)
    cores = len(os.sched_getaffinity(0))
    return f'{cores} core{"" if cores == 1 else "s"}, {model[1].strip() if model else platform.machine()}'


def replaced(text: str, section: str, lines: list[str]) -> str:
    """The page with other lines in a section. Fails if the page has no such section.

    >>> page = 'a\\n<!-- idle: by hand -->\\nold\\n<!-- end of idle -->\\nb\\n'
    >>> replaced(page, 'idle', ['new'])
    'a\\n<!-- idle: by hand -->\\nnew\\n<!-- end of idle -->\\nb\\n'
    >>> replaced(page, 'storm', ['new'])
    Traceback (most recent call last):
    ValueError: the page has no section 'storm'
    """
    borders = re.compile(rf'(<!-- {re.escape(section)}: [^\n]*-->\n).*?(<!-- end of {re.escape(section)} -->)', re.S)
    body = ''.join(line + '\n' for line in lines)
    page, count = borders.subn(lambda match: match[1] + body + match[2], text)
    if count != 1:
        raise ValueError(f"the page has no section '{section}'")
    return page


def write(page: pathlib.Path, section: str, tables: list[Table]) -> None:
    """Replaces a section of the page by tables."""
    lines = [f'Measured on {machine()}.']
    for table in tables:
        lines += ['', *([f'{table.title}:', ''] if len(tables) > 1 else []), *table.markdown()]
    page.write_text(replaced(page.read_text(encoding='utf-8'), section, lines), encoding='utf-8')


if __name__ == '__main__':
    import doctest
    sys.exit(doctest.testmod().failed != 0)
