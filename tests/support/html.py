"""HTML that tests read: its text and its tags, which must close what they open."""

from html.parser import HTMLParser

__all__ = ["Page"]

_VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """The elements of a page, and its text by element."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.codes: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.codes += [""] if tag == "code" else []
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))
        if "code" in self.open:
            self.codes[-1] += data

    @property
    def text(self) -> str:
        """All of its text, a line per piece."""
        return "\n".join(text for _, text in self.texts)

    @property
    def kinds(self) -> set[str]:
        """The names of its elements."""
        return {tag for tag, _ in self.tags}

    def all(self, tag: str) -> list[str]:
        """The text directly in elements of this kind."""
        return [text for name, text in self.texts if name == tag]

    def names(self) -> list[str]:
        return [values["id"] for _, values in self.tags if values.get("id")]  # type: ignore

    def figures(self) -> list[str]:
        return [name.removesuffix("-words") for name in self.names() if name.endswith("-words")]

    def command(self) -> str:
        """What reproduces the result: the last code."""
        return self.codes[-1]
