"""StableHLO of the programs that JAX lowers, without names and locations."""

import collections
import contextlib
import hashlib
import re
from collections.abc import Iterator
from typing import Any

import jax
from jax._src.interpreters import mlir  # the one place where all programs are seen

_NAMES = re.compile(r"@(?!main\b)[\w.<>\"$]+")
_LABELS = re.compile(r'jax\.(result_info|arg_names?) = "[^"]*"')
Programs = dict[str, str]


@contextlib.contextmanager
def lowered_programs(*platforms: str) -> Iterator[Programs]:
    """Record, by function, digests of its programs, each with the number of its products.

    It is complete at the end of the context. Programs of JAX itself are left out. `platforms` are those to
    lower for, instead of this process's.
    """
    jax.clear_caches()
    lower, programs, texts = mlir.lower_jaxpr_to_module, {}, collections.defaultdict(set)

    def observed(name: str, jaxpr: Any, **options: Any) -> Any:
        result = lower(name, jaxpr, **options)
        source = str(jaxpr.jaxpr.debug_info.func_src_info)
        if "jax/_src" not in source:
            other = (
                lower(name, jaxpr, **options | {"platforms": platforms}) if platforms else result
            )
            text = mlir.module_to_string(other.module, enable_debug_info=False)
            if "stablehlo." in text:
                texts[source.split()[0]].add(_entry(text))
        return result

    mlir.lower_jaxpr_to_module = observed
    try:
        yield programs
    finally:
        mlir.lower_jaxpr_to_module = lower
        programs.update((name, " ".join(sorted(texts[name]))) for name in sorted(texts))


def _entry(text: str) -> str:
    names: dict[str, str] = {}
    text = _NAMES.sub(lambda found: names.setdefault(found[0], f"@f{len(names)}"), text)
    digest = hashlib.sha256(_LABELS.sub("", text).encode()).hexdigest()[:12]
    return f"{digest}:{text.count('stablehlo.dot_general')}"


def products(programs: Programs) -> dict[str, set[str]]:
    """Return, by function, the numbers of products of its programs."""
    return {name: set(re.findall(r":(\d+)", entry)) for name, entry in programs.items()}
