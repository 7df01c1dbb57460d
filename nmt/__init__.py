"""Attention-based neural machine translation after Luong et al. (2015) and Bahdanau et al. (2014).

`nmt.load(folder)` gives a trained model that translates, aligns and scores; see docs/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.api import Model, Score, Translation, load

__all__ = ["Model", "Score", "Translation", "load"]


def __getattr__(name: str) -> Any:
    """The public names are looked up in nmt.api when first asked for: torch takes seconds to import."""
    if name in __all__:
        from nmt import api

        return getattr(api, name)
    raise AttributeError(f"module 'nmt' has no attribute {name!r}")
