"""Object code of a compiled function with a door: a C function that takes its arguments as an array of 64-bit words."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

_BYTES = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)


@global_compiler_lock  # type: ignore[untyped-decorator, unused-ignore]
def object_code(dispatcher: Any, name: str) -> bytes:
    """Compile a function and its door ``name(returned, words)``, which returns numba's status.

    Args:
        dispatcher: numba's function of one signature.
        name: of the door.
    """
    (made,) = dispatcher.overloads.values()
    codegen = cpu_target.target_context.codegen()
    library = codegen.create_library(name)
    library.enable_object_caching()
    module = library.create_ir_module(name)
    _add_door(module, made.fndesc, name)
    library.add_ir_module(module)
    library.add_linking_library(made.library)
    library.finalize()
    library.get_pointer_to_function(name)  # compiles
    content: bytes = library._get_compiled_object()
    return content


def _add_door(module: Any, described: Any, name: str) -> None:
    convention = cpu_target.target_context.call_conv
    kind = convention.get_function_type(described.restype, described.argtypes)
    target = ir.Function(module, kind, described.llvm_func_name)
    door = ir.Function(module, ir.FunctionType(ir.IntType(32), [_BYTES, _WORD.as_pointer()]), name)
    builder = ir.IRBuilder(door.append_basic_block())
    returned, words = door.args
    failure = builder.alloca(kind.args[1].pointee)
    arguments = [builder.bitcast(returned, kind.args[0]), failure]
    for number, wanted in enumerate(kind.args[2:]):
        word = builder.load(builder.gep(words, [ir.Constant(_WORD, number)]))
        arguments.append(_as(builder, word, wanted))
    builder.ret(builder.call(target, arguments))


def _as(builder: Any, word: Any, wanted: Any) -> Any:
    if isinstance(wanted, ir.PointerType):
        return builder.inttoptr(word, wanted)
    if isinstance(wanted, ir.DoubleType):
        return builder.bitcast(word, wanted)
    return word if wanted.width == _WORD.width else builder.trunc(word, wanted)
