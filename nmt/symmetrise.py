"""Word links of two directions as one alignment (Och and Ney 2003; Koehn et al. 2003)."""

from __future__ import annotations

from collections.abc import Collection

from nmt.alignment import Link

METHODS = ("grow-diag-final-and", "intersection", "union")
NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


def symmetrise(forward: Collection[Link], backward: Collection[Link], method: str = METHODS[0]) -> set[Link]:
    """One alignment of two, both as (source, target) links; ValueError for an unknown method."""
    if method not in METHODS:
        raise ValueError(f"symmetrisation: found {method!r}, expected one of {', '.join(METHODS)}")
    first, second = set(forward), set(backward)
    if method == "intersection":
        return first & second
    if method == "union":
        return first | second
    return grow_diag_final_and(first, second)


def grow_diag_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    """The links both have, grown by neighbours that either has, and by links of words that are still without any.

    grow-diag: again and again, a link of the union that touches one of the alignment, also by a corner, is added if
    its source word or its target word has no link yet. final-and: of forward, then of backward, a link is added if
    neither of its words has one. Links are visited in order of source, then target.
    """
    links, union = forward & backward, forward | backward
    sources, targets = {s for s, _ in links}, {t for _, t in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    grown = True
    while grown:
        grown = False
        for source, target in sorted(links):
            for i, j in NEIGHBOURS:
                near = (source + i, target + j)
                if near in union and near not in links and (near[0] not in sources or near[1] not in targets):
                    add(near)
                    grown = True
    for direction in (forward, backward):
        for link in sorted(direction):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return links
