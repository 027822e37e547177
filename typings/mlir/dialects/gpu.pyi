from ..ir import OpView, Region, StringAttr

class GPUModuleOp(OpView):
    @property
    def sym_name(self) -> StringAttr: ...
    @property
    def bodyRegion(self) -> Region: ...
