"""COMMAND DOCS."""
from ..protocol.reply import Map, Reply
from .command import Command
def describe(command: Command) -> Reply:
    return Map(())
