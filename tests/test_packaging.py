"""What is installed: the package alone, with its data, its extras, and no need of a checkout."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from focused.errors import missing_extra
from tests.support.crawling import ROOT
from tests.support.made_up_topic import BASE, TOPIC, served_site, write_site
from tests.support.wheel import build_lab_wheel, build_wheel

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LAB: dict[str, Any] = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
USER_EXTRAS = set(EXTRAS) - {"dev", "docs"}
OF_EXTRAS = ("jinja2", "matplotlib", "nh3", "pandas")


def names(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[\[<>=]", each)[0] for each in requirements}


# Metadata


@pytest.mark.parametrize("library", OF_EXTRAS)
def test_a_library_of_an_extra_is_no_base_dependency(library):
    assert library not in names(PROJECT["dependencies"])
    assert any(library in names(each) for each in (*EXTRAS.values(), LAB["dependencies"]))


def extras_within(extra: str) -> set[str]:
    """The extras that an extra consists of, and those of these."""
    own = re.findall(r"focused-crawler\[(.*?)\]", " ".join(EXTRAS[extra]))
    found = {each for names in own for each in names.split(",")}
    return found.union(*(extras_within(each) for each in found))


def test_all_has_every_extra_of_users():
    assert extras_within("all") == USER_EXTRAS - {"all"}


def test_dev_has_all_extras():
    assert extras_within("dev") == set(EXTRAS) - {"dev"}


def test_the_lab_and_the_crawler_are_of_one_version():
    assert LAB["version"] == PROJECT["version"]
    assert LAB["requires-python"] == PROJECT["requires-python"]
    assert EXTRAS["experiments"] == [f"focused-lab=={PROJECT['version']}"]
    assert f"focused-crawler[report]=={PROJECT['version']}" in LAB["dependencies"]


def test_the_readme_lists_the_extras_of_users():
    (listed,) = re.findall(r"^Extras: (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", listed), "all"} == USER_EXTRAS


def test_corpus_names_what_old_versions_of_pip_leave_out():
    # lxml calls its extra html_clean; pip before 23.3 looks for html-clean, and goes on without.
    assert "lxml_html_clean" in names(EXTRAS["corpus"])


def test_scrapy_finds_the_spiders_by_the_settings_of_this_checkout():
    settings = Settings()
    settings.setmodule("spiders.settings")
    assert {"topic", "samples"} <= set(SpiderLoader.from_settings(settings).list())


# Extras


HIDE = """
import sys

import importlib.metadata

class Hidden:
    names = NAMES

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def find_distributions(context=importlib.metadata.DistributionFinder.Context()):
    found = all_distributions(context)
    return (each for each in found if each.name.replace("-", "_") not in Hidden.names)

all_distributions = importlib.metadata.MetadataPathFinder.find_distributions
importlib.metadata.MetadataPathFinder.find_distributions = find_distributions
sys.meta_path.insert(0, Hidden())
"""


def run_without(modules: Iterable[str], folder: Path, *arguments: str):
    return python_without(modules, folder, "-m", "focused.cli", *arguments)


def python_without(modules: Iterable[str], folder: Path, *arguments: str):
    hiding = folder / "hiding"  # found by child processes, too
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(HIDE.replace("NAMES", repr(list(modules))))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(hiding), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("hidden", "arguments", "extra"),
    [
        ("pandas", ["report", "."], "report"),
        ("matplotlib", ["report", ".", "--out", "."], "report"),
        ("pandas", ["why", "http://a.test/"], "report"),
        ("jinja2", ["compare"], "experiments"),
        ("pandas", ["compare"], "experiments"),
        ("pandas", ["compare-revisits"], "experiments"),
        ("nh3", ["label", "."], "label"),
        ("lxml_html_clean", ["export", "."], "corpus"),
        ("htmldate", ["export", "."], "corpus"),
        ("trafilatura", ["export", "."], "corpus"),
        ("duckdb", ["graph", "build", "."], "graph"),
    ],
)
def test_a_command_names_the_extra_that_it_needs_in_one_line(tmp_path, hidden, arguments, extra):
    done = run_without([hidden], tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"focused: {arguments[0]} needs {hidden}, which is not installed: "
        f"pip install 'focused-crawler[{extra}]'"
    ]


REPLAY = ("-s", "FOCUSED_REPLAY=127.0.0.1:9")
OPTIONAL = ("pandas", "matplotlib", "nh3", "jinja2", "trafilatura", "htmldate", "duckdb", "tantivy")


def test_help_and_completion_need_no_extra(tmp_path):
    program = """
import sys
from click.testing import CliRunner
from focused.cli import COMMANDS, main
complete = {"_FOCUSED_COMPLETE": "bash_complete", "COMP_WORDS": "focused ", "COMP_CWORD": "1"}
done = CliRunner().invoke(main, prog_name="focused", env=complete)
assert set(COMMANDS) <= {line.partition(",")[2] for line in done.output.splitlines()}, done.output
imported = {f"focused.cli.{module}" for module, _ in COMMANDS.values()} & set(sys.modules)
print("completed with", sorted(imported))
for command in COMMANDS:
    done = CliRunner().invoke(main, [command, "--help"])
    assert done.exit_code == 0, done.output
"""
    done = python_without(OPTIONAL, tmp_path, "-c", program)
    assert (done.returncode, done.stdout) == (0, "completed with []\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (["compare"], "compare needs"),
        (["compare", "--help"], "compare needs"),
        (["compare-revisits", "--poisson"], "compare-revisits needs"),
        (["web"], "web needs"),
        (["web", "build", "docweb"], "web needs"),
        (["crawl", "cheese.toml", "--web", "site"], "a recorded web needs"),
        (["train", "cheese.toml", "--web", "site"], "a recorded web needs"),
        (["report", "out", "--web", "site"], "a recorded web needs"),
        (["crawl", "cheese.toml", *REPLAY, "-s", "FOCUSED_CLOCK=0,0,1"], "a recorded web needs"),
    ],
)
def test_without_the_lab_what_needs_it_names_what_to_install_in_one_line(
    tmp_path, arguments, needs
):
    write_site(tmp_path / "site")
    done = run_without(["focused_lab"], tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"focused: {needs} focused_lab, which is not installed: "
        "pip install 'focused-crawler[experiments]'"
    ]


def test_without_the_lab_help_lists_the_crawlers_commands(tmp_path):
    listed = run_without(["focused_lab"], tmp_path, "--help").stdout
    assert "\n  crawl " in listed
    assert "\n  compare" not in listed


@pytest.mark.parametrize(
    ("policy", "revisit_policy", "message"),
    [
        ("shark", "hazard", "no policy is named 'shark'; there are focused, best-first, bfs,"),
        ("focused", "nutch", "no revisit policy is named 'nutch'; there are hazard, uniform."),
    ],
)
def test_without_the_lab_a_policy_of_the_literature_is_an_error_that_names_it(
    tmp_path, policy, revisit_policy, message
):
    write_site(tmp_path / "site")
    topic = TOPIC + f'[revisit]\npolicy = "{revisit_policy}"\n'
    (tmp_path / "cheese.toml").write_text(topic)
    done = run_without(["focused_lab"], tmp_path, "crawl", "cheese.toml", "--policy", policy)
    assert done.returncode == 2
    assert message in done.stderr
    assert "More come with pip install 'focused-crawler[experiments]'" in done.stderr


@pytest.mark.parametrize(
    ("hidden", "setting", "extra"),
    [
        ("prometheus_client", "FOCUSED_METRICS_PORT=0", "operations"),
        ("pythonjsonlogger", "FOCUSED_LOG_FORMAT=json", "operations"),
        ("trafilatura", "FOCUSED_ITEM_FIELDS=text", "corpus"),
    ],
)
def test_a_setting_names_the_extra_that_it_needs(tmp_path, hidden, setting, extra):
    write_site(tmp_path / "site")
    done = run_without([hidden], tmp_path, "crawl", "cheese.toml", "-s", setting)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        f"{setting.partition('=')[0]} needs {hidden}, which is not installed: "
        f"pip install 'focused-crawler[{extra}]'"
    )


def test_a_module_of_no_extra_is_an_error_of_ours():
    assert missing_extra(ModuleNotFoundError(name="focused.typo"), "report") is None


def test_a_crawl_needs_no_extra(tmp_path):
    with served_site(tmp_path) as replay:
        crawl = ["crawl", "cheese.toml", "-s", f"FOCUSED_REPLAY={replay}", "--pages", "3"]
        done = run_without(["focused_lab", *OF_EXTRAS], tmp_path, *crawl)
    assert done.returncode == 0, done.stderr
    assert "the report needs" in done.stderr
    assert "focused-crawler[report]" in done.stderr
    assert (tmp_path / "out" / "pages.parquet").is_file()


# The wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"))


@pytest.mark.long
def test_the_wheel_has_focused_alone_with_its_data(wheel):
    files = zipfile.ZipFile(wheel).namelist()
    assert {file.split("/")[0] for file in files if ".dist-info/" not in file} == {"focused"}
    here = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "focused").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not is_compiled(path.name)
    }
    assert here <= set(files)


def is_compiled(file: str) -> bool:
    return file.endswith((".so", "compiled.json"))


@pytest.mark.long
def test_a_wheel_is_plain_python_unless_compiling_is_asked_for(wheel):
    assert wheel.stem.endswith("-py3-none-any")
    assert not any(map(is_compiled, zipfile.ZipFile(wheel).namelist()))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_compiled_wheel_has_all_kernels_compiled_in_their_package(tmp_path):
    wheel = build_wheel(tmp_path, compiled=True)
    assert not wheel.stem.endswith("-any")
    files = set(zipfile.ZipFile(wheel).namelist())
    compiled = set(filter(is_compiled, files))
    assert {str(Path(file).parent) for file in compiled} == {"focused/kernels"}
    modules = {Path(file).name.partition(".")[0] for file in compiled}
    kernels = {path.stem for path in (ROOT / "focused" / "kernels").glob("*.py")} - {"__init__"}
    assert modules == {*kernels, *(f"{kernel}__mypyc" for kernel in kernels), "compiled"}
    assert {f"focused/kernels/{kernel}.py" for kernel in kernels} <= files


@pytest.fixture(scope="module")
def lab_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab_wheel(tmp_path_factory.mktemp("lab") / "source")


@pytest.mark.long
def test_the_wheel_of_the_lab_has_focused_lab_alone_with_its_data(lab_wheel):
    files = zipfile.ZipFile(lab_wheel).namelist()
    assert {file.split("/")[0] for file in files if ".dist-info/" not in file} == {"focused_lab"}
    here = {
        str(path.relative_to(ROOT / "lab"))
        for path in (ROOT / "lab" / "focused_lab").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert here <= set(files)


def installed(folder: Path, *wheels: Path) -> Callable[..., str]:
    """Install wheels into an environment; return how to run ``focused`` in ``folder / "home"``."""
    environment = folder / "venv"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    libraries = next((Path(sys.prefix) / "lib").glob("python*")) / "site-packages"
    own = next((environment / "lib").glob("python*")) / "site-packages"
    # Libraries are visible there; an editable install of this checkout is not.
    (own / "libraries.pth").write_text(f"{libraries}\n")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install = ["--python", str(python), "install", "--no-deps", "--no-index", *map(str, wheels)]
    subprocess.run([*pip, *install], check=True)
    home = folder / "home"
    home.mkdir()

    def focused(*arguments: str) -> str:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [environment / "bin" / "focused", *arguments],
            cwd=home,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = subprocess.check_output(
        [python, "-c", "import focused; print(focused.__file__)"], cwd=home, text=True
    )
    assert where.startswith(str(own))
    return focused


@pytest.mark.long
def test_a_crawl_from_an_empty_folder_needs_the_wheel_alone(wheel, tmp_path):
    focused, home = installed(tmp_path, wheel), tmp_path / "home"
    focused("topic", "init", "cheese", "--user-agent", "CheeseBot/1.0 (+https://cheese.test/bot)")
    topic = home / "topics" / "cheese.toml"
    text = topic.read_text().replace("Top/Computers/Databases", "Top/Food")
    topic.write_text(re.sub(r"urls = \[.*?\]", f'urls = ["{BASE}"]', text, flags=re.DOTALL))
    with served_site(home) as address:
        shutil.copy(home / "directory.tsv", home / "topics" / "cheese.tsv")
        replay = ["-s", f"FOCUSED_REPLAY={address}"]
        focused("crawl", "topics/cheese.toml", *replay, "--delay-s", "0", "--pages", "9")
    assert (home / "crawls" / "cheese" / "pages.parquet").is_file()
    assert (home / "topics" / "cheese.joblib").is_file()


@pytest.mark.long
def test_the_wheel_of_the_lab_serves_a_recorded_web_to_a_crawl(wheel, lab_wheel, tmp_path):
    focused, home = installed(tmp_path, wheel, lab_wheel), tmp_path / "home"
    write_site(home / "site")
    focused("web", "import", "site", "--base-url", BASE, "--folder", "web")
    focused("crawl", "cheese.toml", "--web", "web", "--pages", "9")
    assert (home / "out" / "pages.parquet").is_file()
