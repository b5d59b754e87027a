"""A crawl in a terminal."""

import os
import pty
import re
import signal
import subprocess

from tests.live.webs import SEED, wide_web
from tests.support.crawling import ROOT, command, write_topic
from tests.support.recorded_web import served

PROGRESS = b"\r\x1b[K"


def read_to_end(terminal, until=None):
    """What is printed, up to ``until`` or to the end."""
    printed = b""
    while until is None or until not in printed:
        try:
            printed += os.read(terminal, 4096)
        except OSError:  # the last program that had it open has ended
            break
    return printed


def test_the_report_begins_on_a_line_of_its_own(tmp_path):
    topic = write_topic(tmp_path, SEED, delay_s=300.0)
    terminal, ours = pty.openpty()
    with served(wide_web()) as site:
        crawling = subprocess.Popen(
            command(topic, site.address, FOCUSED_REPORT=True),
            cwd=ROOT,
            stdin=ours,
            stdout=ours,
            stderr=ours,
        )
        os.close(ours)
        read_to_end(terminal, until=PROGRESS)
        crawling.send_signal(signal.SIGINT)
        printed = read_to_end(terminal)
        assert crawling.wait() == 0, printed
    os.close(terminal)
    assert re.search(rb"\n *whales, focused *\r\n", printed), printed
