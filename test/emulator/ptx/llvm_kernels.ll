; Kernels whose PTX is kept beside this file (LLVM 22, target nvptx64, sm_100a, +ptx88, -O3):
;   python compile_llvm_kernels.py
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

@dynamic = external addrspace(3) global [0 x float], align 16
@table = addrspace(4) constant [4 x i32] [i32 3, i32 -5, i32 7, i32 11], align 4

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.minimum.f32(float, float)
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i64 @llvm.umul.with.overflow.i64(i64, i64)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)

; out[i] = max over the warp of relu(a[i] * b[i] + bias), stored as bf16
define ptx_kernel void @epilogue(ptr addrspace(1) align 32 %a, ptr addrspace(1) align 32 %b,
                                 ptr addrspace(1) align 16 %out, float %bias) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %m = mul i32 %c, %n
  %i = add i32 %m, %t
  %i64 = zext i32 %i to i64
  %pa = getelementptr <8 x float>, ptr addrspace(1) %a, i64 %i64
  %pb = getelementptr <8 x float>, ptr addrspace(1) %b, i64 %i64
  %va = load <8 x float>, ptr addrspace(1) %pa, align 32
  %vb = load <8 x float>, ptr addrspace(1) %pb, align 32
  %s = insertelement <8 x float> poison, float %bias, i32 0
  %vc = shufflevector <8 x float> %s, <8 x float> poison, <8 x i32> zeroinitializer
  %p = fmul contract <8 x float> %va, %vb
  %q = fadd contract <8 x float> %p, %vc
  %neg = fcmp olt <8 x float> %q, zeroinitializer
  %r = select <8 x i1> %neg, <8 x float> zeroinitializer, <8 x float> %q
  %h = fptrunc <8 x float> %r to <8 x bfloat>
  %po = getelementptr <8 x bfloat>, ptr addrspace(1) %out, i64 %i64
  store <8 x bfloat> %h, ptr addrspace(1) %po, align 16
  ret void
}

; shared-memory rotation with a dynamic array, a byval structure and a loop
define ptx_kernel void @rotate(ptr addrspace(1) %in, ptr addrspace(1) %out,
                               ptr byval({ i32, [3 x float] }) align 4 %job) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %pi = getelementptr float, ptr addrspace(1) %in, i32 %t
  %v = load float, ptr addrspace(1) %pi
  %ps = getelementptr float, ptr addrspace(3) @dynamic, i32 %t
  store float %v, ptr addrspace(3) %ps
  call void @llvm.nvvm.barrier0()
  %shift = load i32, ptr %job
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k2, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %sum2, %loop ]
  %pf = getelementptr { i32, [3 x float] }, ptr %job, i32 0, i32 1, i32 %k
  %f = load float, ptr %pf
  %o = mul i32 %k, %shift
  %x = add i32 %t, %o
  %y = urem i32 %x, %n
  %pr = getelementptr float, ptr addrspace(3) @dynamic, i32 %y
  %w = load float, ptr addrspace(3) %pr
  %sum2 = call float @llvm.fma.f32(float %f, float %w, float %sum)
  %k2 = add i32 %k, 1
  %more = icmp ult i32 %k2, 3
  br i1 %more, label %loop, label %done
done:
  %po = getelementptr float, ptr addrspace(1) %out, i32 %t
  store float %sum2, ptr addrspace(1) %po
  ret void
}

; integer operations, a switch, a local array and i128 arithmetic
define ptx_kernel void @integers(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %buffer = alloca [8 x i32], align 16
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %pi = getelementptr i32, ptr addrspace(1) %in, i32 %t
  %x = load i32, ptr addrspace(1) %pi
  %j = and i32 %x, 7
  %j1 = add i32 %j, 1
  %j2 = and i32 %j1, 7
  %p0 = getelementptr i32, ptr %buffer, i32 %j
  %p1 = getelementptr i32, ptr %buffer, i32 %j2
  store volatile i32 %x, ptr %p0
  store volatile i32 %t, ptr %p1
  %y = load volatile i32, ptr %p0
  %pop = call i32 @llvm.ctpop.i32(i32 %y)
  %clz = call i32 @llvm.ctlz.i32(i32 %y, i1 false)
  %rot = call i32 @llvm.fshl.i32(i32 %y, i32 %t, i32 %clz)
  %which = and i32 %t, 3
  switch i32 %which, label %other [ i32 0, label %zero
                                    i32 1, label %one
                                    i32 2, label %two ]
zero:
  br label %join
one:
  %q1 = sdiv i32 %y, 7
  br label %join
two:
  %pt = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %which
  %q2 = load i32, ptr addrspace(4) %pt
  br label %join
other:
  %q3 = ashr i32 %y, 3
  br label %join
join:
  %q = phi i32 [ %pop, %zero ], [ %q1, %one ], [ %q2, %two ], [ %q3, %other ]
  %wide = sext i32 %y to i128
  %wide2 = mul i128 %wide, %wide
  %wide3 = mul i128 %wide2, %wide
  %high = lshr i128 %wide3, 64
  %h = trunc i128 %high to i32
  %a1 = add i32 %q, %rot
  %a2 = xor i32 %a1, %h
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %a2, ptr addrspace(1) %po
  ret void
}
