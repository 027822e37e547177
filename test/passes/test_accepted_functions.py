"""Which functions normalize takes: their names, arguments, attributes of modules, and integers."""

import pytest
from linalg_texts import normalized, refusal, returned

NAME = (
    "the name must be of ASCII letters, digits, _ and $, and must not begin with a digit or be _ "
    "or $ alone, got "
)
TAKEN = "the name must be none of PTX's own, WARP_SZ and dynamic_shared, got "


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", f"{NAME}''"),
        ("größe", f"{NAME}'größe'"),
        ("a b", f"{NAME}'a b'"),
        ("a.b", f"{NAME}'a.b'"),
        ("a-b", f"{NAME}'a-b'"),
        ("%a", f"{NAME}'%a'"),
        ("1a", f"{NAME}'1a'"),
        ("_", f"{NAME}'_'"),
        (r"a\00", f"{NAME}'a\\x00'"),
        (r"a\22b", f"{NAME}'a\"b'"),
        (r"a\0A", f"{NAME}'a\\n'"),
        ("WARP_SZ", f"{TAKEN}'WARP_SZ'"),
        ("dynamic_shared", f"{TAKEN}'dynamic_shared'"),
        ("x" * 1025, f"the name must have up to 1024 characters, got 1025, '{'x' * 40}…'"),
    ],
)
def test_names_that_no_ptx_kernel_can_have_are_refused(name, rule):
    text = returned("%sum").replace("@f", f'@"{name}"')
    assert refusal(text) == f"-:1:1: error: func.func: {rule}; rename the function"


@pytest.mark.parametrize("name", ["add", "_1", "$x", "u32", "x" * 1024])
def test_names_that_a_ptx_kernel_can_have_are_kept(name):
    assert name in normalized(returned("%sum").replace("@f", f'@"{name}"'))


INTEGERS = """func.func @f(%a: tensor<64x32xi8>, %b: tensor<32x64xi8>) -> tensor<64x64xi32> {{
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<64x64xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<64x64xi32>) -> tensor<64x64xi32>
  {first} %a : tensor<64x32xi8> to tensor<64x32xi16>
  {second} %p : tensor<64x32xi16> to tensor<64x32xi24>
  %sum = linalg.matmul {{cast = #linalg.type_fn<cast_{third}>}}
    ins(%q, %b : tensor<64x32xi24>, tensor<32x64xi8>)
    outs(%init : tensor<64x64xi32>) -> tensor<64x64xi32>
  return %sum : tensor<64x64xi32>
}}
"""

SIGNS = {"extsi": "signed", "extui": "unsigned"}


@pytest.mark.parametrize("first", SIGNS)
@pytest.mark.parametrize("second", SIGNS)
@pytest.mark.parametrize("third", SIGNS)
def test_integers_are_extended_with_one_sign(first, second, third):
    """Compared with what the chain makes of every byte."""
    text = INTEGERS.format(
        first=f"%p = arith.{first}", second=f"%q = arith.{second}", third=SIGNS[third]
    )
    means = {tuple(chain(byte, first, second, third) for byte in range(256))}
    single = {tuple(chain(byte, sign) for byte in range(256)): sign for sign in SIGNS}
    if means <= single.keys():
        element = {"extsi": "i8", "extui": "ui8"}[single[means.pop()]]
        assert f"%arg0: tensor<64x32x{element}>" in normalized(text)
    else:
        assert refusal(text) == (
            "-:7:10: error: linalg.matmul: A must be extended once, by extf, extsi or extui, "
            f"got {first}, {second}, {third}; extend it by one op"
        )


def chain(byte, *extensions):
    """What extensions from 8 to 16, 24 and 32 bits make of a byte, as 32 bits."""
    value, bits = byte, 8
    for extension in extensions:
        wider = 32 if len(extensions) == 1 else bits + 8
        if extension == "extsi" and value >> (bits - 1):
            value |= (1 << wider) - (1 << bits)
        bits = wider
    return value
