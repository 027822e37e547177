"""What the documents tell people to run of benchmarks and tests takes the words they give it."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_documents import DOCUMENTS, ROOT

COMMAND = re.compile(r"python ((?:test|benchmarks)/[\w/]+\.py[^`|#;&\n]*)")


def documented() -> list[str]:
    """Every command line of a script, without its comment, but for those with a name left open."""
    texts = [re.sub(r"\\\n\s*", "", (ROOT / name).read_text()) for name in DOCUMENTS]
    found = {line.strip() for text in texts for line in COMMAND.findall(text)}
    return sorted(line for line in found if not {"N", "NAME"} & set(line.split()))


def helped(words: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )


def refused(command: str) -> str:
    """Why the script does not take the command's words, or nothing."""
    words = shlex.split(command)
    answer = helped(words)
    if answer.returncode:
        return answer.stderr
    flags = {word for word in words if word.startswith("--")}
    unknown = flags - set(re.findall(r"--[\w-]+", answer.stdout))
    return f"no such options: {sorted(unknown)}" if unknown else ""


@pytest.mark.sweep(16)
@pytest.mark.parametrize("command", documented())
def test_every_documented_script_takes_its_words(command):
    assert (ROOT / Path(command.split()[0])).exists()
    assert not refused(command)


def test_a_word_that_a_script_does_not_know_is_seen():
    assert "no such options: ['--coumt']" in refused("test/fuzz/fuzz_bundles.py --coumt 3")
    assert not refused("test/fuzz/fuzz_bundles.py --count 3")
