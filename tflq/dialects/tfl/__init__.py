"""The operators of TFLite: what is true of each wherever it occurs."""

__all__ = ["builtin_of", "op_name"]


def op_name(builtin: str) -> str:
    """The op of a builtin operator: `CONV_2D` -> `tfl.conv_2d`."""
    return f"tfl.{builtin.lower()}"


def builtin_of(name: str) -> str:
    """The builtin operator of an op: `tfl.conv_2d` -> `CONV_2D`."""
    return name.removeprefix("tfl.").upper()
