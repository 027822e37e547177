"""One entry of the zoo: a kernel, what is done to it, and how the emulator must call it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tilewright.runtime.emulator import Trap

from .bases import ManifestEdit
from .edits import Edit


def unchanged(text: str) -> str:
    """No edit: the bug is in the launch."""
    return text


@dataclass(frozen=True)
class Bug:
    """number: as in the table, letters tell variants apart; name: what the kernel does wrong.

    base: the kernel without the bug (`Matmul` or `Written`); edit: puts the bug in; category: of
    the Trap or, where the ISA allows what happens (`warns`), of the warning that names it; "a or b"
    where the order of events decides; seeds: it must be named by one of the seeds 0 .. seeds-1;
    describe: changes the launch instead of the text; says: a pattern of the verdict's words.
    """

    number: str
    name: str
    base: Any
    edit: Edit
    category: str
    seeds: int = 1
    warns: bool = False
    describe: ManifestEdit | None = None
    says: str = ""

    @property
    def categories(self) -> list[str]:
        """Those that are right."""
        return self.category.split(" or ")

    def is_named_by(self, category: str, words: str) -> bool:
        """Whether this is the right verdict."""
        return category in self.categories and re.search(self.says, words, re.M) is not None

    @property
    def title(self) -> str:
        """For test names."""
        return f"{self.number}-{self.name.replace(' ', '-')}"

    def run(self, seed: int) -> Trap | list:
        """What the emulator says of the kernel with the bug: the Trap, or the warnings."""
        try:
            return self.base.run(self.edit(self.base.ptx), seed, self.describe)[0].warnings
        except Trap as trap:
            return trap
