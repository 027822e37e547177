// The MMA role's K step in the PTX of a 2-CTA preset, whole: one wait, one fence, four MMAs, one commit,
// and between them descriptor adds, moves, the slot's address, the ring's counter and the loop.
// RUN: tilewright compile --preset v6 --m 1024 --n 1024 --k 4096 --emit ptx -o %t.ptx
// RUN: filecheck %s --input-file %t.ptx

// CHECK:      bra.uni
// CHECK:      tcgen05.fence::after_thread_sync;
// CHECK-NEXT: mov.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: mov.b32
// CHECK-NEXT: [[STEP:\$L__BB0_[0-9]+]]:
// CHECK-NEXT: shl.b32
// CHECK-NEXT: add.s32
// CHECK-NEXT: cvt.s64.s32
// CHECK-NEXT: add.s64
// CHECK-NEXT: [[WAIT:\$L__BB0_[0-9]+]]:
// CHECK-NEXT: mbarrier.try_wait.parity.shared.b64
// CHECK-NEXT: not.pred
// CHECK-NEXT: bra [[WAIT]];
// CHECK-NEXT: setp.ne.b64
// CHECK-NEXT: tcgen05.fence::after_thread_sync;
// CHECK-NEXT: shl.b32
// CHECK-NEXT: add.s32
// CHECK-NEXT: add.s32
// CHECK-NEXT: mov.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: mov.b64
// CHECK-NEXT: mov.b32
// CHECK-NEXT: tcgen05.mma.cta_group::2
// CHECK-NEXT: or.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: or.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: mov.pred
// CHECK-NEXT: tcgen05.mma.cta_group::2
// CHECK-NEXT: or.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: or.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: tcgen05.mma.cta_group::2
// CHECK-NEXT: or.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: or.b32
// CHECK-NEXT: mov.b64
// CHECK-NEXT: tcgen05.mma.cta_group::2
// CHECK-NEXT: mov.b16
// CHECK-NEXT: tcgen05.commit.cta_group::2
// CHECK-NEXT: add.s32
// CHECK-NEXT: setp.eq.b32
// CHECK-NEXT: selp.b32
// CHECK-NEXT: selp.b32
// CHECK-NEXT: xor.b32
// CHECK-NEXT: add.s64
// CHECK-NEXT: setp.ne.b64
// CHECK-NEXT: bra [[STEP]];
// CHECK-NEXT: tcgen05.commit.cta_group::2
