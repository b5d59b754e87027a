"""``python -m focused.cli``, if the ``focused`` script is not installed."""

from focused.cli import main

main()
