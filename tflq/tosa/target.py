"""What a device takes: profiles, extensions and level of TOSA, as `rules/tosa.toml` or a file of the user's says."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Profiles ("pro_int", "pro_fp"), extensions ("int16", "int4", "doubleround", ...) and level ("8k", "none")."""

    profiles: frozenset[str] = frozenset({"pro_int", "pro_fp"})
    extensions: frozenset[str] = frozenset({"int16", "int4", "doubleround", "variable", "controlflow"})
    level: str = "8k"

    def has(self, name: str) -> bool:
        """Whether it has a profile or an extension."""
        return name in self.profiles or name in self.extensions
