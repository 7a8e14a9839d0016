"""The language rules that a script can check. Prints each violation as file:line: problem; fails if there is one.

    language.py [ROOT]

Doc comments start with a noun phrase or a third-person verb. Top-level types of Sources have unique names. Lines have at
most 120 columns. Names of tests are sentences in backticks.
"""
import collections
import pathlib
import re
import sys

WIDTH = 120
DOC_START = re.compile(r'\s*/// ?(What|Who|Whose|Those|Where|How|It|They|Is)\b')
TYPE = re.compile(r'(?:@\w+(?:\([^)]*\))?\s+|(?:open|public|package|internal|private|fileprivate|final|indirect|nonisolated)\s+)*'
                  r'(?:struct|class|enum|actor|protocol)\s+(\w+)')
TEST_TITLE = re.compile(r'@Test\(\s*#*"')
# A table row or a link's definition: these cannot be broken.
UNBREAKABLE = re.compile(r'\s*\||\s*\[[^\]]+\]: ')
# The target of a link or an address, which does not count.
TARGET = re.compile(r'\]\([^)]*\)|https?://\S+')


def swift_files(root: pathlib.Path, *folders: str) -> list[pathlib.Path]:
    return sorted(path for folder in folders for path in (root / folder).rglob('*.swift'))


def code_lines(text: str) -> list[tuple[int, str]]:
    """The numbered lines outside of multi-line strings: those hold other languages, whose lines may have to be long."""
    lines = []
    is_string = False
    for number, line in enumerate(text.splitlines(), 1):
        if not is_string:
            lines.append((number, line))
        if line.count('"""') % 2:
            is_string = not is_string
    return lines


def doc_comments(path: pathlib.Path, text: str) -> list[str]:
    problems = []
    former = ''
    for number, line in enumerate(text.splitlines(), 1):
        match = DOC_START.match(line)
        if match and not former.lstrip().startswith('///'):
            problems.append(f"{path}:{number}: a doc comment starts with '{match[1]}'; "
                            'start with a noun phrase or a third-person verb')
        former = line
    return problems


def long_lines(path: pathlib.Path, lines: list[tuple[int, str]]) -> list[str]:
    return [f'{path}:{number}: {len(line)} columns; at most {WIDTH} are allowed'
            for number, line in lines if len(line) > WIDTH]


def test_titles(path: pathlib.Path, text: str) -> list[str]:
    return [f'{path}:{text.count(chr(10), 0, match.start()) + 1}: name the test by a sentence in backticks'
            for match in TEST_TITLE.finditer(text)]


def repeated_types(texts: dict[pathlib.Path, str]) -> list[str]:
    places = collections.defaultdict(list)
    for path, text in texts.items():
        for number, line in code_lines(text):
            if match := TYPE.match(line):
                places[match[1]].append(f'{path}:{number}')
    return [f"{place}: the type '{name}' is declared at {all_places[0]} as well"
            for name, all_places in sorted(places.items()) for place in all_places[1:]]


def markdown_lines(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), 1)
    return [(number, TARGET.sub('', line)) for number, line in lines if not UNBREAKABLE.match(line)]


def check(root: pathlib.Path) -> list[str]:
    def read(path: pathlib.Path) -> str:
        return path.read_text(encoding='utf-8')

    problems = []
    for path in swift_files(root, 'Sources', 'Plugins', 'Tests'):
        name, text = path.relative_to(root), read(path)
        problems += doc_comments(name, text) + long_lines(name, code_lines(text)) + test_titles(name, text)
    problems += repeated_types({path.relative_to(root): read(path) for path in swift_files(root, 'Sources')})
    pages = [root / name for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md')]
    for path in pages + sorted((root / 'docs').rglob('*.md')):
        problems += long_lines(path.relative_to(root), markdown_lines(read(path)))
    return problems


if __name__ == '__main__':
    found = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + '/../..').resolve())
    print(*found, sep='\n', end='\n' if found else '')
    sys.exit(1 if found else 0)
