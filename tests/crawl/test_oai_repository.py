"""A repository of papers is a seed: its list is read part by part, as far as it is on topic."""

from focused.topic import Scope
from focused.web.page import Fetched, Outcome
from tests.support.oai_repository import BASE, Repository, record
from tests.support.recorded_web import html
from tests.support.simulated import topic

PAPERS = 75
SCOPE = Scope(near_duplicates=False)
ROBOTS = "User-agent: *\nDisallow: /papers/7\n"


class PapersSite:
    """Answers in a simulation, in place of a dictionary."""

    def __init__(self, part: int = 10) -> None:
        self.repository = Repository(
            {
                n: record(n, f"http://papers.test/papers/{n}", title=f"whale {n}")
                for n in range(PAPERS)
            },
            part,
        )

    def get(self, url: str, default: Outcome) -> Outcome:
        if url.startswith(BASE):
            body = self.repository.answer(url).encode()
            return Fetched(url, 200, {"content-type": "text/xml"}, body)
        if url.endswith("/robots.txt"):
            return Fetched(url, 200, {"content-type": "text/plain"}, ROBOTS.encode())
        words = f"whale paper {url.rpartition('/')[2]} " * 3
        return Fetched(url, 200, {"content-type": "text/html"}, html(url, text=words))


def test_all_papers_of_a_repository_are_found_from_its_base_url(simulate, tmp_path):
    site = PapersSite()
    rows = simulate(topic(tmp_path, BASE, scope=SCOPE), site).run().rows
    papers = {url: row for url, row in rows.items() if "/papers/" in url}
    forbidden = {url for url in papers if url.rpartition("/")[2].startswith("7")}
    assert len(papers) == PAPERS
    assert {url for url, row in papers.items() if row["outcome"] == "fetched"} == (
        set(papers) - forbidden
    )
    verbs = [each.get("verb") for each in site.repository.requests]
    assert verbs == [None, *["ListRecords"] * 8]


def test_a_list_of_identifiers_leads_to_the_papers(simulate, tmp_path):
    site = PapersSite(part=40)
    seed = f"{BASE}?verb=ListIdentifiers&metadataPrefix=oai_dc"
    rows = simulate(topic(tmp_path, seed, scope=SCOPE), site).run().rows
    assert sum("/papers/" in url for url in rows) == PAPERS
