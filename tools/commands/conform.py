"""`tilewright conform`: tests any matmul on the cases that kernels often get wrong."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_line.arguments import Parser, add_json
from ..command_line.output import print_json
from ..command_line.progress import Progress

if TYPE_CHECKING:
    from ...runtime.conformance import FamilyResult, Subject
    from ...runtime.conformance.cases import Family

EXAMPLES = """examples:
  tilewright conform torch:matmul
  tilewright conform torch.nn.functional:linear --dtype f32 --device cuda
  tilewright conform tilewright:matmul --families k-tails,majors,non-finite
  tilewright conform my_kernels.py:gemm --dtype f16 --b nk
  tilewright conform numpy:matmul --arrays numpy --dtype f32
  tilewright conform matmul.zip
  tilewright conform kernel.ptx --launch launch.json
"""
DEFAULT_MAX_SECONDS = 600.0
PASS, FAIL, UNTRIED = "PASS", "FAIL", "NOT TRIED"


def add_command(commands: Any) -> None:
    """Add `conform` to the command line."""
    parser: Parser = commands.add_parser(
        "conform",
        help="try any matmul on the cases that kernels get wrong",
        description="Tries a matmul - a Python function of torch or numpy arrays, a bundle, or PTX"
        " with a launch file - on sizes, layouts, values and calls that kernels get wrong, and"
        " prints the smallest failing case of each family. Exit status 1 when a result is wrong or"
        " a kernel breaks a rule. A refusal is no failure.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "subject",
        nargs="?",
        metavar="SUBJECT",
        help="MODULE:NAME, FILE.py:NAME, a bundle, or KERNEL.ptx; loading Python runs its code",
    )
    parser.add_argument(
        "--launch",
        type=Path,
        metavar="FILE",
        help="launch file of KERNEL.ptx, with sizes as expressions in M, N, K",
    )
    _add_problem(parser)
    parser.add_argument(
        "--families", metavar="NAMES", help="try only these families, with commas between"
    )
    parser.add_argument("--list", action="store_true", help="name the families and exit")
    parser.add_argument("--large", action="store_true", help="more than 2^31 elements too")
    parser.add_argument(
        "--max-seconds",
        type=float,
        default=DEFAULT_MAX_SECONDS,
        metavar="S",
        help=f"start no case after this time (default {DEFAULT_MAX_SECONDS:g})",
    )
    add_json(parser)
    parser.set_defaults(command=functools.partial(conform_command, parser))


def _add_problem(parser: Parser) -> None:
    parser.add_argument("--dtype", metavar="TYPE", help="type of both operands (default bf16)")
    parser.add_argument("--b-dtype", metavar="TYPE", help="type of B, where it differs")
    parser.add_argument(
        "--b", choices=["kn", "nk"], help="the shape of B (default: found out by a call)"
    )
    parser.add_argument(
        "--arrays", choices=["torch", "numpy"], help="what a function takes (default torch)"
    )
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda or cuda:N; of a bundle also"
                        " emulator (its default)")  # fmt: skip


def conform_command(parser: Parser, options: argparse.Namespace) -> int:
    """Try the subject as the options say; 0 when cases were tried, and no result is wrong and no
    rule is broken."""
    families = _families(parser, options.families)
    if options.list:
        if options.subject is not None:
            parser.error(f"--list must come without a SUBJECT, got {options.subject}")
        return _list(families, options)
    if options.subject is None:
        parser.error("a SUBJECT must be given, got none")
    subject = _subject(parser, options)
    results = _run(subject, families, options)
    verdict = _verdict(results)
    if options.json:
        print_json({"ok": verdict == PASS, **_as_dict(subject, results)})
    else:
        _print(subject, results, options)
    return 0 if verdict == PASS else 1


def _families(parser: Parser, text: str | None) -> list[Family]:
    from ...runtime.conformance import FAMILIES

    if text is None:
        return list(FAMILIES)
    known = {family.name: family for family in FAMILIES}
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"--families must be of {', '.join(known)}, got {', '.join(unknown)}")
    return [known[name] for name in dict.fromkeys(names)]


def _list(families: Sequence[Family], options: argparse.Namespace) -> int:
    if options.json:
        print_json({"ok": True, "families": {each.name: each.about for each in families}})
        return 0
    from ..command_line.tables import print_table

    print_table(["family", "what is tried"], [[each.name, each.about] for each in families])
    return 0


def _subject(parser: Parser, options: argparse.Namespace) -> Subject:
    text: str = options.subject
    if options.launch is not None or text.endswith(".ptx"):
        return _launch_subject(parser, options)
    path = Path(text)
    if path.exists() and ":" not in text:
        from ...runtime.conformance.bundles import BundleSubject

        _refuse(parser, options, "a bundle", ("dtype", "b_dtype", "b", "arrays"))
        return BundleSubject(path, options.device or "emulator")
    return _callable_subject(parser, options)


def _launch_subject(parser: Parser, options: argparse.Namespace) -> Subject:
    from ...runtime.conformance.launches import LaunchSubject

    if options.launch is None:
        parser.error("KERNEL.ptx must come with --launch, got none")
    _refuse(parser, options, "PTX", ("dtype", "b_dtype", "b", "arrays", "device"))
    return LaunchSubject(Path(options.subject), options.launch)


def _callable_subject(parser: Parser, options: argparse.Namespace) -> Subject:
    from ...runtime.conformance.subjects import subject_of
    from ...runtime.conformance.values import LIMITS, RANGES

    dtype = options.dtype or "bf16"
    dtypes = (dtype, options.b_dtype or dtype)
    known = (*LIMITS, *RANGES)
    for each in dtypes:
        if each not in known:
            parser.error(f"--dtype must be one of {', '.join(known)}, got '{each}'")
    device, arrays = options.device or "cpu", options.arrays or "torch"
    if device.partition(":")[0] not in ("cpu", "cuda") or (arrays, device) == ("numpy", "cuda"):
        parser.error(f"--device of {arrays} arrays must be cpu{_or_cuda(arrays)}, got '{device}'")
    return subject_of(
        options.subject, dtypes=dtypes, b_shape=options.b, device=device, arrays=arrays
    )


def _or_cuda(arrays: str) -> str:
    return "" if arrays == "numpy" else ", cuda or cuda:N"


def _refuse(parser: Parser, options: argparse.Namespace, what: str, names: Sequence[str]) -> None:
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) is not None]
    if given:
        parser.error(f"{what} must come without {', '.join(given)}: it says so itself")


def _run(
    subject: Subject, families: Sequence[Family], options: argparse.Namespace
) -> list[FamilyResult]:
    from ...runtime.conformance import run_family

    deadline = time.monotonic() + options.max_seconds
    results = []
    with Progress("starting") as progress:
        for family in families:
            progress.update(f"trying {family.name}")
            results.append(run_family(subject, family, large=options.large, deadline=deadline))
    return results


def _print(subject: Subject, results: Sequence[FamilyResult], options: argparse.Namespace) -> None:
    from ..command_line.tables import print_table

    b_shape = "·".join(("[m, k]", f"[{', '.join(subject.b_shape)}]"))
    print(f"subject    {subject.name}: {b_shape} of {' and '.join(subject.dtypes)},"
          f" on {subject.device}")  # fmt: skip
    columns = ["family", "right []", "refused []", "failed []", "smallest failing case, or why not"]
    print_table(columns, [_row(result) for result in results])
    print(_summary(results, options.max_seconds))


def _row(result: FamilyResult) -> list[str]:
    from ...runtime.conformance import Verdict

    failed = sum(count for verdict, count in result.counts.items() if verdict.failed)
    counts = (result.counts[Verdict.RIGHT], result.counts[Verdict.REFUSED], failed)
    return [result.family.name, *(str(count or "") for count in counts), _remark(result)]


def _remark(result: FamilyResult) -> str:
    """The smallest failing case, else what was refused, else what was skipped."""
    if result.failing is not None:
        return f"{result.failing}: {result.failure}"
    parts = [f"refused {result.refused}: {result.refusal}"] if result.refused else []
    parts += [f"not tried: {result.skipped}"] if result.skipped else []
    parts += [f"{note} ({count} cases)" for note, count in result.notes.items()]
    parts += [f"{result.unfinished} cases had no time"] if result.unfinished else []
    return "; ".join(parts)


def _summary(results: Sequence[FamilyResult], seconds: float) -> str:
    from ...runtime.conformance import Verdict

    total = {verdict: sum(each.counts[verdict] for each in results) for verdict in Verdict}
    failed = total[Verdict.WRONG] + total[Verdict.FAULT]
    unfinished = sum(each.unfinished for each in results)
    counts = f"{total[Verdict.RIGHT]} right, {total[Verdict.REFUSED]} refused, {failed} failed"
    late = f", {unfinished} not tried in {seconds:g} s" if unfinished else ""
    return f"{_verdict(results)}  {counts}{late}"


def _verdict(results: Sequence[FamilyResult]) -> str:
    """The one word about all families. What nobody tried has not passed."""
    if any(result.failed for result in results):
        return FAIL
    return PASS if any(sum(result.counts.values()) for result in results) else UNTRIED


def _as_dict(subject: Subject, results: Sequence[FamilyResult]) -> dict[str, Any]:
    return {
        "subject": subject.name,
        "dtypes": list(subject.dtypes),
        "b_shape": subject.b_shape,
        "device": subject.device,
        "families": [_family_as_dict(result) for result in results],
    }


def _family_as_dict(result: FamilyResult) -> dict[str, Any]:
    case = result.failing
    return {
        "name": result.family.name,
        "counts": {verdict.value.lower(): count for verdict, count in result.counts.items()},
        "smallest_failing": None if case is None else {"case": str(case), "seed": case.seed},
        "failure": result.failure or None,
        "refusal": result.refusal or None,
        "skipped": result.skipped or None,
        "notes": dict(result.notes),
        "unfinished": result.unfinished,
    }
