"""Random kernels that hand data from thread to thread, beside the execution that each has in every
order of events: all flags are written once, or waited for with the value that counts."""

from __future__ import annotations

import random
from collections.abc import Callable

from memory_axioms import REACH, Execution, Operation, Thread, distance

CTAS, WARPS, MBARRIERS = 4, 2, 8
THREADS = [(cta, warp, lane) for cta in range(CTAS) for warp in range(WARPS) for lane in (0, 5)]
FLAGS, DATA = 1024, 2048
"""Where these lie in shared memory; mbarriers are at its start."""
HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flags, .param .u64 out)
{ .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<2>; .shared .align 16 .b8 memory[4096];
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [flags]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r0, 64, %r1; mov.u32 %r3, memory;
  mov.u32 %r4, 0; setp.ne.u32 %p0, %r1, 0; @%p0 bra START;
"""
"""r2: the thread, r3: the shared memory."""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


class Kernel:
    """draw: where everything is drawn from; steps: of the text, in what is each thread's order."""

    def __init__(self, draw: random.Random):
        self.draw, self.execution, self.steps = draw, Execution(), []
        self._flags = self._mbarriers = 0

    def text(self) -> str:
        inits = "".join(f"mbarrier.init.shared::cta.b64 [%r3+{8 * i}], 1;" for i in range(8))
        inits += "".join(f"st.shared.b32 [%r3+{FLAGS + 16 * i}], 0;" for i in range(self._flags))
        return "\n".join([HEADER + inits, f"START: {MEET}", *self.steps, f"{MEET} ret; }}"])

    def _only(self, thread: Thread, body: str) -> None:
        number, label = (thread[0] * WARPS + thread[1]) * 32 + thread[2], f"S{len(self.steps)}"
        self.steps.append(f"setp.ne.u32 %p0, %r2, {number}; @%p0 bra {label}; {body} {label}:")

    def _place(self, cta: int | None, offset: int, base: str) -> tuple[str, str, str]:
        """Instructions ahead of an access, its state space and address; cta: None for global."""
        if cta is None:
            return "", "global", f"[{base}+{offset}]"
        return (
            f"mapa.shared::cluster.u32 %r5, %r3, {cta % 2};",
            "shared::cluster",
            f"[%r5+{offset}]",
        )

    def _scope(self, one: Thread, other: Thread) -> str:
        """Nearly always one that reaches."""
        far = distance(one, other)
        fits = [scope for scope in REACH if REACH[scope] >= far]
        return self.draw.choice(list(REACH) if self.draw.random() < 0.05 else fits)

    def fence(self, thread: Thread, scope: str | None = None) -> None:
        order, scope = self.draw.choice(["acq_rel", "sc"]), scope or self.draw.choice(list(REACH))
        self.execution.add(Operation(thread, "fence", order, scope))
        self._only(thread, f"fence.{order}.{scope};")

    def access(self, thread: Thread, cta: int | None, number: int, value: int | None) -> int:
        """A weak access to the data of this number; value: what is written, None of a read."""
        offset = 16 * number + (0 if cta is None else DATA)
        ahead, space, at = self._place(cta, offset, "%rd0")
        body = f"ld.{space}.b32 %r6, {at}; st.global.b32 [%rd2+{16 * number}], %r6;"
        self._only(thread, ahead + (body if value is None else f"st.{space}.b32 {at}, {value};"))
        return self.execution.add(Operation(thread, "data"))

    # -- hops ------------------------------------------------------------------------------------

    def by_flag(self, one: Thread, other: Thread) -> None:
        cta = self.draw.choice([one[0], other[0]]) if distance(one, other) < 2 else None
        cta, number = self.draw.choice([cta, None]), self._flags
        self._flags += 1
        place = self._place(cta, 16 * number + (0 if cta is None else FLAGS), "%rd1")
        chain, value = self._set(one, other, place, number)
        if self.draw.random() < 0.25:
            near = [each for each in THREADS if cta is None or each[0] // 2 == cta // 2]
            chain.append(self._update(self.draw.choice(near), place, chain, value))
            value += 16
        self._await(other, one, place, chain, value)

    def _set(self, one: Thread, other: Thread, place: tuple, flag: int) -> tuple[list[int], int]:
        """The writes that a reader may see, and the value of the last."""
        ahead, space, at = place
        scope, how = self._scope(one, other), self.draw.choice(["st", "st", "red", "twice"])
        order = "relaxed" if how == "twice" else self.draw.choice(["relaxed", "release"])
        if how == "twice":
            first = self._scope(one, other)
            self.execution.add(Operation(one, "write", "release", first, flag))
            ahead += f"st.release.{first}.{space}.b32 {at}, 1;"
        elif order == "relaxed" and self.draw.random() < 0.8:
            self.fence(one, self._scope(one, other))
        value = 2 if how == "twice" else 1
        verb, kind = ("red", "add.u32") if how == "red" else ("st", "b32")
        self._only(one, f"{ahead} {verb}.{order}.{scope}.{space}.{kind} {at}, {value};")
        return [self.execution.add(Operation(one, "write", order, scope, flag))], value

    def _poll(self, place: tuple, load: str, value: int) -> str:
        ahead, space, at = place
        label = f"P{len(self.steps)}"
        loop = f"{label}: {load}.{space}.b32 %r6, {at}; and.b32 %r7, %r6, {value};"
        return f"{ahead} {loop} setp.ne.u32 %p1, %r7, {value}; @%p1 bra {label};"

    def _update(self, thread: Thread, place: tuple, chain: list[int], value: int) -> int:
        """An atomic update of what has been written, by any thread."""
        order, scope = self.draw.choice(["relaxed", "acq_rel"]), "gpu"
        update = f"atom.{order}.{scope}.{place[1]}.add.u32 %r6, {place[2]}, 16;"
        self._only(thread, self._poll(place, "ld.relaxed.sys", value) + update)
        self.execution.observed.append(
            [*chain, self.execution.add(Operation(thread, "read", "relaxed", "sys"))]
        )
        node = self.execution.add(Operation(thread, "update", order, scope))
        self.execution.observed.append([*chain, node])
        return node

    def _await(
        self, thread: Thread, writer: Thread, place: tuple, chain: list[int], value: int
    ) -> None:
        order = self.draw.choice(["relaxed", "acquire"])
        scope = self._scope(thread, writer)
        self._only(thread, self._poll(place, f"ld.{order}.{scope}", value))
        node = self.execution.add(Operation(thread, "read", order, scope))
        self.execution.observed.append([*chain, node])
        if order == "relaxed" and self.draw.random() < 0.8:
            self.fence(thread, self._scope(thread, writer))

    def by_mbarrier(self, one: Thread, other: Thread) -> None:
        """The scope of an arrival reaches; that of a wait is not judged."""
        if distance(one, other) == 2 or self._mbarriers == MBARRIERS:
            self.by_flag(one, other)
            return
        order, at = self.draw.choice(["release", "relaxed"]), 8 * self._mbarriers
        self._mbarriers += 1
        if order == "relaxed" and self.draw.random() < 0.8:
            self.fence(one, self._scope(one, other))
        write = self.execution.add(Operation(one, "write", order, "cluster"))
        ahead = f"mapa.shared::cluster.u32 %r5, %r3, {other[0] % 2};"
        arrive = f"mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [%r5+{at}];"
        self._only(one, ahead + arrive)
        label = f"P{len(self.steps)}"
        wait = f"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3+{at}], 0;"
        self._only(other, f"{label}: {wait} @!%p1 bra {label};")
        read = self.execution.add(Operation(other, "read", "acquire", "sys"))
        self.execution.observed.append([write, read])

    def _by_all(self, unit: int, number: int, body: str, relaxed: bool = False) -> None:
        """All threads whose number divided by the unit is this one meet."""
        label = f"S{len(self.steps)}"
        chosen = f"div.u32 %r8, %r2, {unit}; setp.ne.u32 %p0, %r8, {number}; @%p0 bra {label};"
        self.steps.append(f"{chosen} {body} {label}:")
        threads = [
            (each // 64, each // 32 % 2, each % 32)
            for each in range(number * unit, (number + 1) * unit)
        ]
        arrivals = [self.execution.add(Operation(each, "arrive")) for each in threads]
        waits = [self.execution.add(Operation(each, "wait")) for each in threads]
        for arrival in arrivals:
            covered = self._fences_ahead(arrival) if relaxed else [arrival]
            self.execution.barriers += [
                (node, wait)
                for node in covered
                for wait in waits
                if self.execution.operations[node].includes(self.execution.operations[wait])
            ]

    def _fences_ahead(self, arrival: int) -> list[int]:
        own, before = self.execution.operations[arrival], self.execution.operations[:arrival]
        return [
            node
            for node, each in enumerate(before)
            if each.thread == own.thread and each.kind == "fence"
        ]

    def by_cta(self, one: Thread, other: Thread) -> None:
        self._by_all(64, one[0], "bar.sync 1;")

    def by_warp(self, one: Thread, other: Thread) -> None:
        self._by_all(32, one[0] * 2 + one[1], "bar.warp.sync -1;")

    def by_cluster(self, one: Thread, other: Thread) -> None:
        relaxed = self.draw.random() < 0.3
        arrive = "barrier.cluster.arrive" + ".relaxed" * relaxed
        body = f"{arrive}.aligned; barrier.cluster.wait.aligned;"
        self._by_all(128, one[0] // 2, body, relaxed)


Hop = Callable[[Kernel, Thread, Thread], None]
HOPS: list[Hop] = [
    *[Kernel.by_flag] * 3, Kernel.by_mbarrier, Kernel.by_cta, Kernel.by_warp, Kernel.by_cluster,
]  # fmt: skip


def drawn(seed: int) -> tuple[Kernel, int, int] | None:
    """A kernel with two accesses to the same data, one of them writing, by their nodes; None where
    none were drawn that the race check tells apart."""
    draw = random.Random(seed)
    kernel, threads = Kernel(draw), draw.sample(THREADS, draw.randint(2, 4))
    at, accesses = threads[0], []
    for _ in range(draw.randint(1, 5)):
        to = draw.choice([each for each in threads if each != at])
        if not accesses or draw.random() < 0.7:
            writes = draw.random() < 0.65
            cta = draw.choice([None, at[0], at[0] ^ 1]) if writes else None
            node = kernel.access(at, cta, len(accesses), 1 if writes else None)
            accesses.append((node, at, cta, len(accesses), writes))
        draw.choice(HOPS)(kernel, at, to)
        if draw.random() < 0.2:
            kernel.fence(draw.choice(threads))
        at = to
    node, thread, cta, number, writes = draw.choice(accesses)
    others = [each for each in (*threads, at, at) if each != thread]
    if cta is not None:
        others = [each for each in others if each[0] // 2 == cta // 2]
    if not writes:
        others = [each for each in others if each[:2] != thread[:2]]
    if not others:
        return None
    value = 2 if not writes or draw.random() < 0.3 else None
    return kernel, node, kernel.access(draw.choice(others), cta, number, value)
