"""Reads members of YAML mappings and reports errors."""
from .scenario import ScenarioError


class Fields:
    """The members of one mapping. Members that were not read are reported as unknown at the end."""

    def __init__(self, node, what: str):
        if not isinstance(node, dict):
            raise ScenarioError(f'{what} must be a mapping')
        self.what = what
        self._members = {key: value for key, value in node.items() if value != ''}

    def take(self, key: str, parse, default=None):
        if key not in self._members:
            return default
        return self._parsed(key, self._members.pop(key), parse)

    def need(self, key: str, parse):
        if key not in self._members:
            raise ScenarioError(f"{self.what} needs '{key}'")
        return self.take(key, parse)

    def node(self, key: str):
        return self._members.pop(key, None)

    def list(self, key: str, parse=None) -> list | None:
        node = self._members.pop(key, None)
        if node is None:
            return None
        if not isinstance(node, list):
            raise ScenarioError(f"{self.what}: '{key}' must be a list")
        return [self._parsed(key, element, parse) for element in node] if parse else node

    def table(self, key: str, parse_key, parse) -> dict:
        node = self._members.pop(key, {})
        if not isinstance(node, dict):
            raise ScenarioError(f"{self.what}: '{key}' must be a mapping")
        return {self._parsed(key, name, parse_key): self._parsed(key, value, parse) for name, value in node.items()}

    def lists(self, key: str, parse_key, parse) -> dict:
        """Like `table`, but each value is a list or its only element."""
        node = self._members.pop(key, {})
        if not isinstance(node, dict):
            raise ScenarioError(f"{self.what}: '{key}' must be a mapping")
        return {
            self._parsed(key, name, parse_key): [
                self._parsed(key, value, parse) for value in (values if isinstance(values, list) else [values])
            ]
            for name, values in node.items()
        }

    def finish(self, *ignored: str) -> None:
        for key in self._members:
            if key not in ignored:
                raise ScenarioError(f"{self.what}: unknown key '{key}'")

    def _parsed(self, key: str, value, parse):
        try:
            if not isinstance(value, str):
                raise ValueError('a text')
            return parse(value)
        except ValueError as error:
            raise ScenarioError(f"{self.what}: '{key}' must be {error}") from None
