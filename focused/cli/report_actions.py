"""``focused report`` and ``focused why``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from focused.cli.common import echo
from focused.errors import ConfigurationError
from focused.recorded_web.recorded_web import LABELS_FILE, read_web_labels
from focused.reports.crawl_report import CategoryLabels
from focused.reports.report_output import print_comparison, print_report
from focused.reports.why import explain_url
from focused.reports.why_output import print_explanation
from focused.topic import DEFAULT_CRAWLS_FOLDER
from focused.topic.topic_file import load_topic

_MAX_LISTED = 20


def crawl_folders_of(where: tuple[Path, ...], policies: str | None) -> list[Path]:
    """Return the crawls' folders: given folders, and those of topic files by policy.

    Without arguments, the only crawl under ``crawls/``.
    """
    names = [name.strip() for name in (policies or "focused").split(",") if name.strip()]
    topics = [path for path in where if path.is_file()]
    if policies is not None and not topics:
        raise ConfigurationError("--policies goes with a topic file: name one before it")
    folders: list[Path] = []
    for path in where:
        if path in topics:
            topic = load_topic(path)
            folders += [topic.crawl_folder(name) for name in names]
        else:
            folders.append(path)
    return folders or [only_crawl("focused report {}")]


def show_report(folder: Path, web: Path | None, out: Path | None, plot: Path | None) -> None:
    """Print one crawl's report; write its JSON and pictures to ``out``, if given."""
    if plot is not None:
        raise ConfigurationError("--plot is for several crawls: give --out FOLDER for one")
    print_report(folder, Console(), _labels(web), out=out)


def show_comparison(
    folders: list[Path], web: Path | None, out: Path | None, plot: Path | None
) -> None:
    """Compare crawls; draw their curves to ``plot``, else beside the first crawl's folder."""
    if out is not None:
        raise ConfigurationError("--out is for one crawl: give --plot FILE for several")
    picture = plot or folders[0].with_name(f"{folders[0].name}-comparison.png")
    try:
        print_comparison(folders, Console(), picture, _labels(web))
    except OSError as error:
        raise ConfigurationError(
            f"{picture} cannot be written: {error.strerror}; --plot names another file"
        ) from error


def show_why(url: str, folder: Path | None) -> None:
    """Print why ``url`` was fetched in the crawl of ``folder``, or in the only crawl."""
    folder = folder or only_crawl(f"focused why {url} --folder {{}}")
    print_explanation(explain_url(folder, url), Console())


def only_crawl(command: str) -> Path:
    """Return the only crawl under ``crawls/``; raises ConfigurationError for none or several.

    ``command`` is the command to suggest, with braces for the folder.
    """
    found = sorted(path for path in DEFAULT_CRAWLS_FOLDER.glob("*") if _is_crawl(path))
    if not found:
        raise ConfigurationError(
            f"there is no crawl under {DEFAULT_CRAWLS_FOLDER}/ here; name its folder: "
            f"{command.format('FOLDER')}"
        )
    if len(found) > 1:
        listed = "".join(f"\n  {path}" for path in found[:_MAX_LISTED])
        more = f"\n  and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
        raise ConfigurationError(
            f"there are several crawls here; name one, as in {command.format(found[0])}"
            f"{listed}{more}"
        )
    echo(f"focused: reporting the crawl in {found[0]}", err=True)
    return found[0]


def _is_crawl(folder: Path) -> bool:
    return (folder / "pages.parquet").is_file() or (folder / "state" / "data.mdb").is_file()


def _labels(web: Path | None) -> CategoryLabels | None:
    return None if web is None else read_web_labels(web / LABELS_FILE) or None
