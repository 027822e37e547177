"""Writes llvm_kernels.ptx from llvm_kernels.ll with llvmlite."""

from pathlib import Path

import llvmlite.binding as llvm

SOURCE = Path(__file__).with_name("llvm_kernels.ll")


def main() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(SOURCE.read_text())
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
        cpu="sm_100a", features="+ptx88", opt=3
    )
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    SOURCE.with_suffix(".ptx").write_text(machine.emit_assembly(module))


if __name__ == "__main__":
    main()
