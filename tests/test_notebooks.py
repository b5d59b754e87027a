"""The notebooks run on a small crawl and a small comparison."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.lab.two_sides import build_web, write_compared
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
# ipykernel speaks TCP on loopback and says so; nothing leaves this machine.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.long]


def sea() -> MemoryWeb:
    """Eighty pages on two hosts, every third about whales."""
    urls = [
        f"http://{'ab'[n % 2]}.test/{'whale' if n % 3 == 0 else 'trade'}-{n}" for n in range(80)
    ]
    pages = [page("http://a.test/", html("Start", *urls[:20], "/missing"))]
    for n, url in enumerate(urls):
        links = [urls[(n * 7 + step) % len(urls)] for step in range(1, 9)]
        pages.append(page(url, html(url.rpartition("/")[2], *links, text=f"text of {url}")))
    return MemoryWeb(*pages)


@pytest.fixture(scope="module")
def finished_crawl(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("crawl")
    with served(sea()) as site:
        topic = write_topic(folder, "http://a.test/", budget="pages = 60")
        guide = "tests.support.whale_models.learning_models"
        done = crawl(topic, site.address, FOCUSED_MODELS=guide)
    assert done.status == 0, done.output
    return str(done.folder)


def executed(name: str, **parameters: Any) -> dict[str, str]:
    """Run a notebook with other parameters; return each cell's output by its beginning."""
    notebook: Any = nbformat.read(NOTEBOOKS / name, as_version=4)
    (given,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    given.source += "".join(f"\n{key} = {value!r}" for key, value in parameters.items())
    NotebookClient(
        notebook, timeout=240, resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return {cell.source.splitlines()[0]: _shown(cell) for cell in cells if cell.source}


def _shown(cell: Any) -> str:
    texts = (output.get("text") or output.data.get("text/plain", "") for output in cell.outputs)
    return "\n".join(texts)


def test_the_notebook_on_a_finished_crawl_runs(finished_crawl):
    shown = executed("finished_crawl.ipynb", CRAWL=finished_crawl)
    assert "whales: 60 counted pages" in shown["import re"]
    assert (
        "whale" in shown['found = pages[pages.on_topic].sort_values("relevance", ascending=False)']
    )
    assert "a.test" in shown["hosts = pd.DataFrame(rank_hosts_by_harvest(crawl.pages))"]
    chart = shown["from focused.link_scoring.linear_model import DEFAULT_PRIOR, load_link_prior"]
    assert "Figure" in chart


def test_the_notebook_on_a_comparison_runs(tmp_path):
    web, topic = build_web(tmp_path / "web"), write_compared(tmp_path)
    shown = executed(
        "comparison.ipynb",
        WEB=str(web),
        TOPICS=[str(topic)],
        POLICIES="focused,best-first,bfs,path-oracle",
        BUDGET=20,
        OUT=str(tmp_path / "out"),
    )
    assert "focused" in shown['comparison = read_comparison(Path(OUT) / "comparison.json")']
    assert "whales" in shown["runs = runs_frame(comparison.runs)"]
    assert "classifier_harvest" in shown['runs.groupby("policy", observed=True)[']


def test_no_notebook_is_left_unexecuted():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS.glob("*.ipynb") if path.name not in source] == []
