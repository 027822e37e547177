"""Every form of linalg that a file may hold gives what its formula in numpy gives, to the last bit
where no function is in it."""

import re

import pytest
from form_values import exact_or_close, small_integers
from linalg_forms import FORMS, REFUSED

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.dialects.errors import CompileError
from tilewright.runtime.launch.loading import open_kernel


@pytest.mark.sweep(6)
@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_what_its_formula_gives(name, target, tmp_path):
    form = FORMS[name]
    path = tmp_path / "f.mlir"
    path.write_text(form.text())
    arguments = small_integers(form.arguments)
    kernel = open_kernel(as_bundle(compile_matmul(path, target=target)))
    found = kernel(*(each.clone() for each in arguments))
    wanted = form.formula(*(each.double().numpy() for each in arguments))
    results = zip(_several(found), _several(wanted), strict=True)
    assert not [told for pair in results if (told := exact_or_close(*pair, form.relative))]


def _several(values):
    return values if isinstance(values, tuple) else (values,)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_with_its_cure(name, tmp_path):
    form, rule = REFUSED[name]
    path = tmp_path / "f.mlir"
    path.write_text(form.text())
    with pytest.raises(CompileError, match=re.escape(rule)):
        compile_matmul(path)


def test_there_are_as_many_forms_as_were_tried_by_hand():
    assert len(FORMS) + len(REFUSED) >= 85
