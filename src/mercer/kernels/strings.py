"""Spectrum: strings compared by the substrings that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, combinations, islice, pairwise, product
from math import comb
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import Domain, is_integer, require
from .feature_kernels import FeatureKernel
from .hashing import MOST_COLUMNS, columns_of, counted, mixed, scaled_rows, squared_lengths
from .points import read_each
from .types import Array

_CODE_POINTS = 0x110000
# Letters in a substring, and substrings that one window may count for.
_LONGEST, _MOST_VARIANTS = 1000, 100_000
# Windows counted at once: bounds the memory beyond that of the result.
_WINDOWS = 1 << 22


class Spectrum(FeatureKernel):
    r"""Compare texts, DNA or proteins by counting the substrings of one length that they share.

    k(x, z) is the sum over all substrings s of (occurrences in x) times (occurrences in z). Its own
    map (`explicit`) has one sparse coordinate per substring.

    Parameters
    ----------
    length : int, range or list of int, default=3
        Letters in a substring; several lengths are counted side by side.
    mismatches : int, default=0
        Each substring also counts for all others that differ from it in at most so many letters.
        Needs an alphabet.
    gaps : int, default=0
        Each window of `length + gaps` letters counts once for every different substring that
        remains when `gaps` of its letters are left out.
    alphabet : str, bytes or None, default=None
        All letters that occur, such as "ACGT"; another letter is then an error. With an alphabet
        coordinates are numbered in its order. None: any letter may occur, and coordinates of
        long substrings are numbered by hashes.
    normalize : bool, default=False
        Divide by lengths in feature space, so that k(x, x) = 1 (and 0 for a string without any
        substring of that length).

    Notes
    -----
    .. math::

        k(x, z) = \sum_s \#_s(x)\; \#_s(z)

    - *Valid*: an inner product of counts.
    - *Fails*: for strings of very different lengths, unless `normalize=True`; for letters that
      move, unless `gaps` or `mismatches` allow it.
    - *Elsewhere*: kernlab's `stringdot(type="spectrum")`, strkernel.

    Leslie, Eskin and Noble (2002) for the spectrum, Leslie et al. (2004) for mismatches, Leslie and
    Kuang (2004) for gaps.

    Column numbers are exact while there are at most 2^61 substrings (any letters: up to 3 letters;
    "ACGT": up to 30). Beyond, they are hashes: two of m different substrings share a column with a
    probability below m^2 / 2^62, which is 2e-7 for a million.

    Examples
    --------
    >>> from mercer import Spectrum
    >>> Spectrum(2)(["banana", "bandana", "dandy"])
    array([[9., 7., 2.],
           [7., 8., 4.],
           [2., 4., 4.]])
    >>> dna = Spectrum(2, alphabet="ACGT")
    >>> dna.explicit_dim(None), dna.explicit(["ACACG"]).toarray()[0, :8]
    (16, array([0., 2., 0., 0., 1., 0., 1., 0.]))
    """

    against_checks = True  # it reads every letter
    domains = {
        "mismatches": Domain.whole(0, _LONGEST),
        "gaps": Domain.whole(0, _LONGEST),
        "normalize": Domain.FLAG,
        "alphabet": Domain(
            lambda a: a is None or (isinstance(a, (str, bytes)) and len(a) > 0),
            "a text of all letters, such as 'ACGT', or None",
        ),
    }

    def __init__(
        self,
        length: int | Iterable[int] = 3,
        mismatches: int = 0,
        gaps: int = 0,
        alphabet: str | bytes | None = None,
        normalize: bool = False,
    ) -> None:
        self.length = length
        self.mismatches = mismatches
        self.gaps = gaps
        self.alphabet = alphabet
        self.normalize = normalize

    def check_parameters(self) -> None:
        lengths = self._lengths()
        super().check_parameters()
        if self.alphabet is not None:
            letters = _as_text(self.alphabet)
            twice = sorted({c for c in letters if letters.count(c) > 1})
            require(not twice, f"Spectrum(alphabet) names {twice[:1]} more than once.")
        if self.mismatches:
            require(
                self.alphabet is not None,
                f"Spectrum(mismatches={self.mismatches}) needs to know which letters there are: "
                "alphabet='ACGT' for DNA, 'ACDEFGHIKLMNPQRSTVWY' for proteins.",
            )
            require(not self.gaps, "Spectrum takes mismatches or gaps, not both.")
            require(
                self.mismatches < min(lengths),
                f"Spectrum(mismatches={self.mismatches}) must be smaller than the length "
                f"{min(lengths)}: otherwise all substrings are alike.",
            )
        require(
            self._variants() <= _MOST_VARIANTS,
            f"{self!r} would count each window for more than {_MOST_VARIANTS} substrings: take "
            "fewer mismatches or gaps.",
        )

    def _lengths(self) -> list[int]:
        """The lengths as a list of integers, checked."""
        given: Any = self.length
        several = np.iterable(given) and not isinstance(given, str)
        listed = list(islice(given, _LONGEST + 1)) if several else [given]
        require(
            len(listed) > 0 and all(is_integer(n) and 1 <= n <= _LONGEST for n in listed),
            f"Spectrum(length) must be an integer >= 1 (and at most {_LONGEST}) or several, such "
            f"as range(1, 4), got {given!r}.",
        )
        require(len(set(listed)) == len(listed), f"Spectrum(length) has a length twice: {given!r}.")
        return [int(n) for n in listed]

    def explicit_dim(self, n_features: int | None) -> int:
        return min(sum(self._sizes()), MOST_COLUMNS)

    def features(self, X: Array) -> Array:
        texts, offsets = read_each(X, _as_text), [0, *accumulate(self._sizes())]
        exact = offsets[-1] <= MOST_COLUMNS
        blocks = [self._block(*block, offsets, exact) for block in self._blocks(texts)]
        F = blocks[0] if len(blocks) == 1 else type(blocks[0])(scipy.sparse.vstack(blocks, "csr"))
        if self.normalize:
            lengths = np.sqrt(squared_lengths(F))
            F = scaled_rows(F, 1 / np.where(lengths == 0, 1.0, lengths))
        return F

    def rounding(self, S: Array) -> float:
        """Counts are exact; shares of them are added up over all substrings."""
        return 6.0 + max(map(len, S)) ** 0.5 if self.normalize else super().rounding(S)

    def _base(self):
        """How many letters there are."""
        return _CODE_POINTS if self.alphabet is None else len(self.alphabet)

    def _sizes(self):
        """How many different substrings there are of each length, as Python integers."""
        return [self._base() ** n for n in self._lengths()]

    def _block(self, before, texts, offsets, exact):
        """Counts of some strings, all their letters in one array."""
        codes, starts = self._codes(texts, before)
        keys, rows = [], []
        for length, offset in zip(self._lengths(), offsets):
            # The first letter of each window, and the string that it is in.
            windows = np.maximum(np.diff(starts) - (length + int(self.gaps)) + 1, 0)
            owner = np.repeat(np.arange(len(windows)), windows)
            before = np.cumsum(windows) - windows
            first = np.arange(len(owner)) + (starts[:-1] - before)[owner]
            for found, which in self._substrings(codes, first, length, exact):
                keys.append(found + offset if exact else found)
                rows.append(owner if which is None else owner[which])
        width = offsets[-1] if exact else MOST_COLUMNS
        all_keys, all_rows = np.concatenate(keys), np.concatenate(rows)
        if len(keys) > 1:
            order = np.argsort(all_rows, kind="stable")
            all_keys, all_rows = all_keys[order], all_rows[order]
        per_row = np.bincount(all_rows, minlength=len(starts) - 1)
        return counted(all_keys, np.concatenate([[0], np.cumsum(per_row)]), width)

    def _substrings(self, codes, first, length, exact):
        """(column numbers, which windows they belong to or None for all), once per variant."""
        base = self._base()
        if self.gaps:  # different substrings of each window, each once
            variants = [
                _number([codes[first + j] for j in kept], base, exact)
                for kept in combinations(range(length + int(self.gaps)), length)
            ]
            table = np.sort(np.stack(variants), axis=0)
            yield table[0], None
            for previous, current in pairwise(table):
                new = np.flatnonzero(current != previous)
                yield current[new], new
            return
        digits = [codes[first + j] for j in range(length)]
        yield _number(digits, base, exact), None
        for changes in range(1, int(self.mismatches) + 1):
            for places in combinations(range(length), changes):
                for steps in product(range(1, base), repeat=changes):
                    changed = list(digits)
                    for place, step in zip(places, steps):
                        changed[place] = (digits[place] + step) % base
                    yield _number(changed, base, exact), None

    def _blocks(self, texts) -> Iterator[tuple[int, list[str]]]:
        """Stretches of the strings, each with the number of strings before it."""
        most, size, a = max(1, _WINDOWS // self._variants()), 0, 0
        for i, text in enumerate(texts, 1):
            size += len(text)
            if size >= most or i == len(texts):
                yield a, texts[a:i]
                size, a = 0, i

    def _variants(self) -> int:
        """How many substrings one window counts for, summed over the lengths."""
        others = self._base() - 1
        return sum(
            comb(n + int(self.gaps), n)
            if self.gaps
            else sum(comb(n, m) * others**m for m in range(int(self.mismatches) + 1))
            for n in self._lengths()
        )

    def _codes(self, texts, before):
        """Letters of all strings as numbers, and where each string starts among them."""
        starts = np.cumsum([0, *map(len, texts)])
        letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        if self.alphabet is None:
            return letters.astype(np.int64), starts
        table = np.full(_CODE_POINTS, -1, dtype=np.int64)
        table[[ord(c) for c in _as_text(self.alphabet)]] = np.arange(len(self.alphabet))
        codes = table[letters]
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            i = int(np.searchsorted(starts, unknown[0], side="right")) - 1
            place = int(unknown[0] - starts[i])
            raise ValueError(
                f"X[{before + i}] has the letter {texts[i][place]!r} at position {place}, which is "
                f"not in the alphabet {self.alphabet!r}: add it to the alphabet, or replace it."
            )
        return codes, starts

    def check_range(self, *samples: Array | None) -> None:
        """Counts do not overflow; what can be wrong is a letter or an object."""
        for X in samples:
            for before, texts in self._blocks([] if X is None else read_each(X, _as_text)):
                self._codes(texts, before)


def _as_text(x: str | bytes) -> str:
    """Bytes as the letters of the same numbers."""
    if not isinstance(x, (str, bytes)):
        raise TypeError(f"is {type(x).__name__} {x!r:.40}: Spectrum compares strings.")
    return x.decode("latin-1") if isinstance(x, bytes) else x


def _number(digits, base, exact):
    """Substrings as numbers to this base, or as hashes where those would be too large."""
    if exact:
        number = digits[0].copy()
        for digit in digits[1:]:
            number *= base
            number += digit
        return number
    key = np.full(len(digits[0]), len(digits), dtype=np.uint64)
    for digit in digits:
        key = mixed(key ^ digit.astype(np.uint64))
    return columns_of(key)
