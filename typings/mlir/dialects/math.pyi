from ._builders import Binary, Ternary, Unary

absf: Unary
copysign: Binary
fma: Ternary
