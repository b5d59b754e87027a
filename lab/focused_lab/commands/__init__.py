"""The commands of the lab: entry points of the group ``focused.commands``."""
