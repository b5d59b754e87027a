"""The console: watch and steer crawls in the browser."""
