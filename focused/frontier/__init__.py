"""What to fetch next, and when.

A link comes in with a priority and a score, rests in its host's queue on
disk, and comes out when it is the best link of a host that may be asked now.
Two levels (Mercator's front and back queues, Heydon and Najork 1999): hosts,
and the addresses they stand at, by the time at which they may be asked again;
links of a host by priority.

``frontier`` is the seam: what a crawl asks of any frontier. ``disk_frontier``
keeps its promises with ``hosts`` and ``turns`` in memory and links on disk:
``link_table`` has what lies there, ``recent_links`` what was met of late;
``link_rows`` and ``places`` say how links are written, ``tables`` writes them and
all else that a crawl keeps, and ``store`` makes it true, by ``environment`` and
``journal``, until a write fails (``soundness``).

What always holds:

- a URL enters once: the URL-seen test is exact;
- a host is asked by one fetch at a time, and not before it is due; so are
  the hosts at one address together;
- a link leaves its queue in the same transaction that records what became of
  it, so a crash at any moment loses nothing and repeats only what was in flight;
- nothing here reads a clock: ``now`` is always given.
"""
