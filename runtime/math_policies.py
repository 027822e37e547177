"""The policies for the error of an epilogue's functions, and which functions those are."""

FAST, EXACT = POLICIES = ("fast", "exact")
LOGARITHMS = ("math.log", "math.log10", "math.log1p", "math.log2")
CIRCULAR = ("math.cos", "math.sin")  # under either policy as exact
FUNCTIONS = ("math.erf", "math.exp", "math.exp2", *LOGARITHMS, "math.powf", "math.tanh")
