"""A sample of the mutants of PTX: none ends in a traceback, and few are judged unlike ptxas does.

`python test/fuzz/ptx_mutants.py --count 3000` takes more, and shows those that differ.
"""

from collections import Counter

import pytest
from ptx_mutants import KNOWN, judge, mutant

CHUNK = 6


@pytest.mark.sweep(32)
@pytest.mark.parametrize("chunk", range(64))
def test_mutants_are_judged_as_ptxas_judges_them(chunk):
    verdicts = [judge(mutant(11, CHUNK * chunk + each)) for each in range(CHUNK)]
    counts = Counter(verdict.kind for verdict in verdicts)
    wrong = [str(each) for each in verdicts if each.kind in ("internal", "false-alarm")]
    assert not wrong, "\n".join(wrong)
    assert counts["missed"] <= 2, "\n".join(str(each) for each in verdicts)


def test_what_is_known_to_differ_says_why():
    assert all(len(reason) > 20 for reason in KNOWN.values())
