"""Each extra alone, installed from the wheel by the oldest supported pip, runs its commands.

The wheel without extras is installed once. Each extra has an environment of its own that sees the
first, so that only the libraries of the extra are installed there. In one more environment all
libraries are as old as pyproject.toml allows.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.crawling import ROOT
from tests.support.made_up_topic import BASE, TOPIC, served_site
from tests.support.wheel import build_lab_wheel, build_wheel

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="that pip needs an older Python"),
    pytest.mark.timeout(900),  # downloads of a first run count
]

OWN_VARIABLES = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")  # the first run compiles the libraries
OLDEST_PIP = "23.0.1"
"""The pip of Debian 12."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NO_SERVER = "127.0.0.1:9"
NO_ADDRESS = "192.0.2.1"
REPLAY = ("-s", "FOCUSED_REPLAY={replay}")
COMMANDS = {
    "report": ["report", "out"],
    "experiments": [
        *("compare", "--web", "web", "--topic", "cheese.toml"),
        *("--policies", "bfs", "--budget", "3"),
    ],
    "label": ["label", "out", "--host", NO_ADDRESS, "--labels", "labels.jsonl"],
    "cluster": [
        *("crawl", "cheese.toml", *REPLAY, "--folder", "many", "--processes", "2"),
        *("--ray", NO_SERVER, "--storage", "file://{folder}/shared"),
    ],
    "corpus": ["export", "out", "--min-relevance", "0", "--out", "corpus"],
    "documents": ["crawl", "documents.toml", *REPLAY, "--pages", "2"],
    "search": ["search", "out", "cheese", "--json"],
    "javascript": ["crawl", "javascript.toml", *REPLAY, "--pages", "2"],
    "opensearch": ["index", "out", f"opensearch+http://{NO_SERVER}/pages"],
    "elasticsearch": ["index", "out", f"elasticsearch+http://{NO_SERVER}/pages"],
    "solr": ["index", "out", f"solr+http://{NO_SERVER}/solr/pages"],
    "graph": ["graph", "build", "out", "--out", "graph"],
    "operations": [
        *("crawl", "cheese.toml", *REPLAY, "--pages", "2", "--folder", "other"),
        *("-s", "FOCUSED_METRICS_PORT=0", "-s", "FOCUSED_LOG_FORMAT=json"),
    ],
}
IMPORTS = {"login": "import focused.scrapy_addon.login_gate, keyring"}
"""Where a command would need a site."""
ENDS_FOR_WANT_OF = {
    "cluster": NO_SERVER,
    "elasticsearch": NO_SERVER,
    "label": NO_ADDRESS,
    "opensearch": NO_SERVER,
    "solr": NO_SERVER,
}
"""What the error of a command names that has all its libraries."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel alone, and the folder of a crawl that it made.

    ``replay`` is the address of the web that was crawled.
    """

    wheel: Path
    folder: Path
    replay: str
    environment: Path
    constraints: Path


def site_packages(environment: Path) -> Path:
    return next((environment / "lib").glob("python*")) / "site-packages"


def pip_install(installed: Installed, environment: Path, *requirements: str) -> str:
    done = subprocess.run(
        [
            *(installed.environment / "bin" / "python", "-m", "pip", "--python"),
            *(environment / "bin" / "python", "install", "--no-compile"),
            *("--disable-pip-version-check", "--constraint", installed.constraints),
            *("--find-links", installed.folder / "lab"),
            *requirements,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def focused(
    installed: Installed, environment: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return run_python(installed, environment, "-m", "focused.cli", *arguments)


def run_python(
    installed: Installed, environment: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [environment / "bin" / "python", "-P", *arguments],
        cwd=installed.folder,
        env={name: value for name, value in os.environ.items() if name not in OWN_VARIABLES},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("installed")
    with served_site(folder) as replay:
        yield crawled_by_wheel(folder, replay)


def crawled_by_wheel(folder: Path, replay: str) -> Installed:
    environment = folder / "base"
    venv.create(environment, with_pip=True)
    # The versions of this environment: pip finds them at once, and in its cache.
    constraints = folder / "constraints.txt"
    versions = {each.name: each.version for each in metadata.distributions()}
    versions = {
        name: version for name, version in versions.items() if not name.startswith("focused-")
    }
    own = {"pip": OLDEST_PIP}
    lines = [f"{name}=={version}" for name, version in sorted((versions | own).items())]
    constraints.write_text("\n".join(lines))
    source = folder / "source"
    source.mkdir()
    build_lab_wheel(folder / "lab")
    made = Installed(build_wheel(source), folder, replay, environment, constraints)
    pip_install(made, environment, f"pip=={OLDEST_PIP}")
    pip_install(made, environment, str(made.wheel))
    for name, scope in (
        ("documents", 'documents = ["markdown"]'),
        ("javascript", 'javascript = "render"'),
    ):
        own = TOPIC.replace('folder = "out"', f'folder = "{name}"')
        (folder / f"{name}.toml").write_text(f"{own}[scope]\n{scope}\n")
    crawl = ("crawl", "cheese.toml", "-s", f"FOCUSED_REPLAY={replay}", "--pages", "9")
    done = focused(made, environment, *crawl)
    assert done.returncode == 0, done.stderr
    labels = [f"{BASE}cheese{number}.html\tTop/Food\n" for number in range(20)]
    (folder / "web" / "labels.tsv").write_text("".join(labels))
    return made


def test_every_extra_of_users_is_tried():
    extras = set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs"}
    assert COMMANDS.keys() | IMPORTS.keys() == extras


@pytest.mark.parametrize("extra", [*COMMANDS, *IMPORTS])
def test_an_extra_alone_has_all_that_its_command_needs(installed, tmp_path, extra):
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    base = site_packages(installed.environment)
    (site_packages(environment) / "base.pth").write_text(f"{base}\n")
    pip_install(installed, environment, f"focused-crawler[{extra}] @ {installed.wheel.as_uri()}")
    check_extra(installed, environment, extra)
    shutil.rmtree(environment)


@pytest.fixture(scope="module")
def oldest(installed) -> Path:
    """An environment with all extras, and with the oldest versions that pyproject.toml allows."""
    environment = installed.folder / "oldest"
    venv.create(environment, with_pip=False)
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    listed = [*PROJECT["dependencies"], *lab["dependencies"]]
    for extra in COMMANDS.keys() | IMPORTS.keys():
        listed += PROJECT["optional-dependencies"][extra]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", each) for each in listed]
    constraints = installed.folder / "oldest.txt"
    constraints.write_text("".join(f"{each[1]}=={each[2]}.*\n" for each in bounds if each))
    allowed = replace(installed, constraints=constraints)
    pip_install(allowed, environment, f"focused-crawler[all] @ {installed.wheel.as_uri()}")
    return environment


@pytest.mark.parametrize("extra", [*COMMANDS, *IMPORTS])
def test_an_extra_runs_with_the_oldest_versions_of_all_libraries(installed, oldest, extra):
    check_extra(installed, oldest, extra)


def check_extra(installed: Installed, environment: Path, extra: str) -> None:
    """Check that the command of an extra finds all its libraries, and what it calls in them."""
    if extra in IMPORTS:
        done = run_python(installed, environment, "-c", IMPORTS[extra])
    else:
        done = focused(
            installed,
            environment,
            *(
                word.format(folder=installed.folder, replay=installed.replay)
                for word in COMMANDS[extra]
            ),
        )
    assert "Traceback" not in done.stderr
    assert f"focused-crawler[{extra}]" not in done.stderr
    assert (done.returncode != 0) == (extra in ENDS_FOR_WANT_OF), done.stderr
    assert ENDS_FOR_WANT_OF.get(extra, "") in done.stderr
