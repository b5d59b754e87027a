"""The frontier: what to fetch next, and when.

Two levels (Mercator's front and back queues, Heydon and Najork 1999): hosts and the addresses they
resolve to, by the time they may be requested again; links of a host by priority. Start with
:mod:`focused.frontier.disk_frontier`: hosts in memory and links on disk.

Invariants:

- A URL enters once: the URL-seen test is exact.
- A host has one fetch in flight at a time, and none before it is due; so have the hosts at one
  address together.
- A link leaves its queue in the transaction that records its outcome. A crash loses nothing and
  repeats only what was in flight.
- Nothing reads a clock: ``now`` is an argument.
"""
