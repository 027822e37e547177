"""Planted faults in what runs while LLVM does: a ptxas that waits for its PTX, and checks."""

from __future__ import annotations

from fault import Fault

AHEAD = [
    Fault(
        "ptxas ahead: one that fails at a pipe is not followed by one that reads a file",
        "        if self._ended(end) != 0:\n            return None\n",
        "        self._ended(end)\n",
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
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "later checks: those behind one that found something are said before it",
        "        finally:\n            self._left = late\n",
        "        finally:\n            self._left.extend(late)\n",
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "later checks: those that hold up the back end run beside it",
        "                if deferred.is_late:\n",
        "                if not deferred.is_late:\n",
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "later checks: passes that users wrote are checked behind the last one",
        "    if foreign or observer or not all(PASSES.is_own(call.name) for call in calls):\n",
        "    if foreign or observer:\n",
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "beside: nobody waits for native code where Python fails",
        "    finally:\n        over.set()\n        _wait_for(turn)\n",
        "    finally:\n        over.set()\n",
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "beside: an interrupt comes out while native code runs",
        "        except BaseException as error:\n            interrupts.append(error)\n",
        "        except BaseException:\n            raise\n",
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "beside: where no thread begins nothing is called",
        "    except RuntimeError:\n        run()\n",
        "    except ZeroDivisionError:\n        run()\n",
        ("test/compiler/test_deferred_checks.py",),
    ),
    Fault(
        "backend: a child waits for the LLVM of a thread that it has not",
        "    free_in_children(llvm.ffi.lib._lock._lock)",
        "    id(llvm.ffi.lib._lock._lock)",
        ("test/backend/test_ptxas_ahead.py",),
    ),
    Fault(
        "ptxas ahead: a child that is forked keeps the end of its input from it",
        "        os.close(_given.pop())\n",
        "        _given.pop()\n",
        ("test/backend/test_ptxas_ahead.py",),
    ),
    Fault(
        "ptxas ahead: what it says goes nowhere",
        "stdout=said, stderr=said",
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL",
        ("test/backend/test_ptxas_ahead.py",),
    ),
]
