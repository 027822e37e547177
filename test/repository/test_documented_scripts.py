"""What the documents tell people to run of benchmarks and tests takes the words they give it."""

import re
import shlex
import subprocess
import sys

import pytest
from test_documents import DOCUMENTS, ROOT

COMMAND = re.compile(r"python ((?:test|benchmarks)/[\w/]+\.py[^`|#;&\n]*)")


def documented() -> list[str]:
    """Every command line of a script, without its comment, but for those with a name left open."""
    texts = [re.sub(r"\\\n\s*", "", (ROOT / name).read_text()) for name in DOCUMENTS]
    found = {line.strip() for text in texts for line in COMMAND.findall(from_the_root(text))}
    return sorted(line for line in found if not {"N", "NAME"} & set(line.split()))


def from_the_root(text: str) -> str:
    """The text with the scripts of its shell blocks as they are called from the root."""
    return re.sub(r"```sh\n(.*?)```", _without_cd, text, flags=re.DOTALL)


def _without_cd(block: re.Match[str]) -> str:
    """A block whose `cd FOLDER` stands in the scripts that are called behind it."""
    before, moved, after = block[1].partition("cd benchmarks")
    folder, _, lines = after.partition("\n")
    inside = f"python benchmarks{folder.strip()}/"
    return before + (lines.replace("python ", inside) if moved else "")


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
    assert not refused(command)


def test_every_documented_script_exists():
    assert all((ROOT / command.split()[0]).exists() for command in documented())


def test_scripts_are_found_behind_a_change_of_folder():
    block = "```sh\ncd benchmarks/gpu_test\npython gpu_test.py F80   # on the GPU\n```"
    assert COMMAND.findall(from_the_root(block)) == ["benchmarks/gpu_test/gpu_test.py F80   "]


def test_a_word_that_a_script_does_not_know_is_seen():
    assert "no such options: ['--coumt']" in refused("test/fuzz/fuzz_bundles.py --coumt 3")
    assert not refused("test/fuzz/fuzz_bundles.py --count 3")
