"""``python -m focused.cli``, where the ``focused`` script is not installed."""

from focused.cli import main

main()
