"""Changes to bytes and back: the door to encoder.py, decoder.py and layouts.py."""

from .decoder import Decoder, Undecodable
from .encoder import encode_changes

__all__ = ["Decoder", "Undecodable", "encode_changes"]
