"""Every form of a torch module that one kernel computes gives what the module gives in float64."""

import copy

import module_forms
import pytest
import torch
import user_forms
from form_values import exact_or_close

from tilewright import compile_module
from tilewright.dialects.errors import CompileError

FORMS = {**module_forms.FORMS, **user_forms.FORMS}
REFUSED = {**module_forms.REFUSED, **user_forms.REFUSED}


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore:.*tf32:UserWarning")
def test_a_module_gives_what_it_gives_in_float64(name, target):
    form = FORMS[name]
    module, inputs = form.module(), form.examples()
    kernel = compile_module(module, *inputs, target=target)
    with torch.no_grad():
        found = kernel(*(each.clone() for each in inputs))
        given = module(*(each.clone() for each in inputs))
        wanted = copy.deepcopy(module).double()(*(each.double() for each in inputs))
    results = zip(*map(_several, (found, given, wanted)), strict=True)
    for one, own, wide in results:
        assert one.dtype == own.dtype
        assert not exact_or_close(one, wide.double().numpy(), form.relative)


def _several(values):
    return values if isinstance(values, tuple) else (values,)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_kernel_computes_is_refused_with_a_cure(name):
    form = REFUSED[name]
    with pytest.raises(CompileError, match=";"):
        compile_module(form.module(), *form.examples())


def test_there_are_more_forms_than_were_tried_by_hand():
    assert len(FORMS) + len(REFUSED) >= 240
