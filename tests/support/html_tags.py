"""The tags of a page, read by Python's own parser."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that tags close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.attributes, self.words = [], set(), [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data
