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
def lowered_programs() -> Iterator[Programs]:
    """Record, by function, digests of its programs, each with the number of its products.

    It is complete at the end of the context. Programs of JAX itself are left out. Where the program for
    CUDA is another one than that of this process, its digest follows after a stroke.
    """
    jax.clear_caches()
    lower, programs, texts = mlir.lower_jaxpr_to_module, {}, collections.defaultdict(set)

    def observed(name: str, jaxpr: Any, **options: Any) -> Any:
        result = lower(name, jaxpr, **options)
        source = str(jaxpr.jaxpr.debug_info.func_src_info)
        if "jax/_src" not in source:
            text = _text(result)
            if "stablehlo." in text:
                entry, cuda = _entry(text), _cuda(lower, name, jaxpr, options)
                texts[source.split()[0]].add(entry if cuda == entry else f"{entry}/{cuda}")
        return result

    mlir.lower_jaxpr_to_module = observed
    try:
        yield programs
    finally:
        mlir.lower_jaxpr_to_module = lower
        programs.update((name, " ".join(sorted(texts[name]))) for name in sorted(texts))


def _cuda(lower: Any, name: str, jaxpr: Any, options: dict[str, Any]) -> str:
    """Return the entry of the program for CUDA; a word where it cannot be lowered without a GPU."""
    try:
        return _entry(_text(lower(name, jaxpr, **options | {"platforms": ("cuda",)})))
    except NotImplementedError:
        return "none"


def _text(lowered: Any) -> str:
    return mlir.module_to_string(lowered.module, enable_debug_info=False)


def _entry(text: str) -> str:
    names: dict[str, str] = {}
    text = _NAMES.sub(lambda found: names.setdefault(found[0], f"@f{len(names)}"), text)
    digest = hashlib.sha256(_LABELS.sub("", text).encode()).hexdigest()[:12]
    return f"{digest}:{text.count('stablehlo.dot_general')}"


def products(programs: Programs) -> dict[str, set[str]]:
    """Return, by function, the numbers of products of its programs."""
    return {name: set(re.findall(r":(\d+)", entry)) for name, entry in programs.items()}
