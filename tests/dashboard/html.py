"""Reads the views of the dashboard: the texts of their tables, links and other elements, without a browser."""

import re
from html import unescape

import httpx
from support.http import Api

from followup_mockserver import MockServer, MockService
from followup_mockserver.service import InProcessTransport


def text_of(html: str) -> str:
    """Return the text of HTML, with single spaces, also between elements except isolated names."""
    names_joined = re.sub(r"</?bdi>", "", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", names_joined))).strip()


def short_times(html: str) -> str:
    """Return HTML with month, day, hour and minute (UTC) in the place of each time."""
    return re.sub(r'<time datetime="\d{4}-([\d-]+)T(\d\d:\d\d)[^>]*>.*?</time>', r"\1 \2", html, flags=re.DOTALL)


class Views:
    """Requests the views of a mock in this process."""

    def __init__(self, service: MockService | MockServer) -> None:
        http = httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url)
        self.api = Api(http, service.api_key)

    def html(self, path: str) -> str:
        """Return the main part of a view."""
        response = self.api.get(f"/_mock/views/{path}")
        assert response.status_code == 200, response.text
        return response.text.partition("<main")[2]

    def section(self, path: str, heading: str) -> str:
        """Return the part of a view that the heading with this id labels."""
        found = re.search(rf'<section[^>]*aria-labelledby="{heading}">(.*?)</section>', self.html(path), re.DOTALL)
        assert found is not None, heading
        return found[1]

    def text(self, path: str) -> str:
        """Return the text of the main part of a view."""
        return text_of(self.html(path).partition(">")[2])

    def rows(self, path: str, table: int = 0) -> list[dict[str, str]]:
        """Return the rows of a table, each by the headings of its columns."""
        tables = re.findall(r'<table[^>]*class="list"[^>]*>(.*?)</table>', self.html(path), re.DOTALL)
        if not tables:
            return []
        headings = [
            text_of(each) for each in re.findall(r'<th [^>]*scope="col"[^>]*>(.*?)</th>', tables[table], re.DOTALL)
        ]
        rows = re.findall(r'<tr(?![^>]*"divider")[^>]*>(.*?)</tr>', tables[table], re.DOTALL)[1:]
        return [
            dict(zip(headings, map(text_of, re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)), strict=True))
            for row in rows
        ]

    def column(self, path: str, heading: str) -> list[str]:
        """Return the texts of a column of the first table."""
        return [row[heading] for row in self.rows(path)]

    def tabs(self, path: str) -> dict[str, int]:
        """Return the tabs above a list, and the number of each."""
        navigation = re.search(r'<nav class="tabs"[^>]*>(.*?)</nav>', self.html(path), re.DOTALL)
        assert navigation is not None
        found = re.findall(r"<a[^>]*>([^<]*)<span[^>]*>(\d+)</span></a>", navigation[1])
        return {unescape(text).strip(): int(count) for text, count in found}

    def everywhere(self) -> list[str]:
        """Return the paths of all views that links lead to, from the overview on; of lists only the first page."""
        found = ["overview"]
        for path in found:
            links = map(unescape, re.findall(r'href="#/([^"?]*)"', self.api.get(f"/_mock/views/{path}").text))
            found += [link for link in dict.fromkeys(links) if link not in found]
        return found

    def link(self, path: str, text: str) -> str:
        """Return the path of the view that the link with this text opens."""
        found = re.search(rf'href="#/([^"]*)"[^>]*>\s*{re.escape(text)}\s*<', self.html(path))
        assert found is not None, text
        return unescape(found[1])
