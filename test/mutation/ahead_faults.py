"""Planted faults in what runs while LLVM does: a ptxas that waits for its PTX, and checks."""

from __future__ import annotations

from fault import Fault

AHEAD = [
    Fault(
        "ptxas ahead: one that fails at a pipe is not followed by one that reads a file",
        "        if self._process.returncode != 0:\n            return None\n",
        "",
        ("test/backend/test_ptxas_ahead.py",),
    ),
    Fault(
        "ptxas ahead: it counts for a command with other options",
        "        if self._is_asked or list(command) != self._command:\n",
        "        if self._is_asked:\n",
        ("test/backend/test_ptxas_ahead.py",),
    ),
    Fault(
        "later checks: those that are left are left out behind an error",
        "        except Exception:\n            self.run()\n            raise\n",
        "        except Exception:\n            raise\n",
        ("test/compiler/test_later_checks.py",),
    ),
    Fault(
        "later checks: passes that users wrote are checked behind the last one",
        "    if foreign or observer or not all(PASSES.is_own(call.name) for call in calls):\n",
        "    if foreign or observer:\n",
        ("test/compiler/test_later_checks.py",),
    ),
    Fault(
        "beside: nobody waits for native code where Python fails",
        "    finally:\n        thread.join()\n",
        "    finally:\n        pass\n",
        ("test/compiler/test_later_checks.py",),
    ),
]
