"""Compiles every kernel of `nmt.kernels` for an H200, as no GPU is needed for; prints one line a kernel.

A script of its own, since triton's interpreter, in which the tests run the kernels, is chosen when triton is loaded.
"""

import inspect

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from nmt import kernels
from nmt.attention import AttentionConfig, Readings, build_scope

TARGET = GPUTarget("cuda", 90, 32)
NUMBER, STATE, EXACT, WHOLE = "i32", "*bf16", "*fp32", "*i64"  # a stride or step; what products read; the rest; words


def compile_kernel(kernel, *arguments, **constants):
    """arguments: a type, or None for what is left out, of each tensor and number, in the kernel's order."""
    names = [name for name in inspect.signature(kernel.fn).parameters if name not in constants]
    given = dict(zip(names, arguments, strict=True))
    constants |= {name: None for name, kind in given.items() if kind is None}
    signature = {name: kind for name, kind in given.items() if kind is not None} | dict.fromkeys(constants, "constexpr")
    ordered = {name: signature[name] for name in inspect.signature(kernel.fn).parameters}
    compiled = triton.compile(ASTSource(kernel, ordered, constants), target=TARGET)
    print(kernel.fn.__name__, constants, compiled.metadata.shared, "bytes shared", len(compiled.asm["cubin"]), "bytes")


def main():
    size = {"SIZE": 1000, "BLOCK": kernels.UNITS}
    for reader, mask in ((None, None), (STATE, None), (STATE, EXACT)):
        tensors = (STATE, EXACT, EXACT, STATE, reader, mask)
        compile_kernel(kernels.lstm_step_kernel, *tensors, NUMBER, NUMBER, **size)
    for d_read, mask, d_output, d_later in ((None, None, STATE, None), (STATE, EXACT, None, STATE)):
        tensors = (STATE, EXACT, EXACT, d_read, mask, d_output, d_later, EXACT)
        compile_kernel(kernels.lstm_back_kernel, *tensors, NUMBER, NUMBER, NUMBER, **size)
    for name, readings in (
        ("global", Readings(padding="unmasked")),
        ("local-m", Readings()),
        ("local-p", Readings(gaussian="renormalised")),
        ("local-p", Readings()),
    ):
        constants = kernels.attend_constants(build_scope(AttentionConfig(name), 1000, readings), 200, 1000)
        exact = EXACT if name == "local-p" else None
        tensors = (STATE, STATE, STATE, STATE, exact, exact, EXACT, WHOLE, STATE, EXACT)
        compile_kernel(kernels.attend_step_kernel, *tensors, *[NUMBER] * 5, **constants)
        tensors = (STATE, STATE, EXACT, STATE, STATE, STATE, STATE, exact, exact, EXACT, WHOLE, EXACT, exact, STATE)
        compile_kernel(kernels.attend_back_kernel, *tensors, *[NUMBER] * 5, **constants, PULL=1.0)
    for gradient in (False, True):
        constants = {"COUNT": 50_000, "GRADIENT": gradient, "BLOCK": kernels.WORDS}
        compile_kernel(kernels.likelihood_kernel, STATE, WHOLE, EXACT, **constants)
    compile_kernel(kernels.descend_kernel, EXACT, EXACT, EXACT, "*i1", NUMBER, BLOCK=kernels.ELEMENTS)


if __name__ == "__main__":
    main()
