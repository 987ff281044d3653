"""Language models: distributions of the terms of a text in one class, of order 1 (unigrams) or 2 (bigrams)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from likely.errors import InputError, InputTypeError, check_number, listed
from likely.model.rendering import RenderedResult, TextTable, limited, short_names, to_frame
from likely.numerics.caches import cached_property
from likely.numerics.random import seeded
from likely.numerics.ties import first_best
from likely.statistics.bigram_counts import START, BigramCounts
from likely.typing import Array, Codes, Index, RandomStateLike

CONCENTRATIONS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SMOOTHING = 0.5  # pseudo-count of each term, by default
SHOWN = 12  # terms that are printed, at most

Analyzer = Callable[[str], Iterable[str]]


def term_ids(texts: Iterable[str], analyzer: Analyzer, vocabulary: Mapping[str, int]) -> list[Codes]:
    """The vocabulary indices of the terms of each text, in order; −1 is a term outside of the vocabulary."""
    place = vocabulary.get
    return [np.array([place(term, -1) for term in analyzer(text)], dtype=np.int32) for text in texts]


def choose_concentrations(bigrams: BigramCounts, counts: Any, smoothing: float) -> Array:
    """The concentration μ of each class: the one with the largest leave-one-out log-probability of its pairs.

    `counts` are those of the terms, (classes, terms), dense or sparse. Among ties, the largest concentration is chosen,
    which is closest to independence.
    """
    chosen = np.zeros(bigrams.n_classes)
    for k in range(bigrams.n_classes):
        terms = np.ravel(counts[[k]].toarray() if scipy.sparse.issparse(counts) else counts[k])
        scores = leave_one_out_scores(bigrams.select(k), terms, smoothing, CONCENTRATIONS)
        chosen[k] = CONCENTRATIONS[len(scores) - 1 - first_best(scores[::-1])]
    return chosen


def leave_one_out_scores(
    bigrams: BigramCounts, counts: Array, smoothing: float, concentrations: Sequence[float]
) -> Array:
    """Sums of the leave-one-out log-probabilities of the pairs of one class, one for each concentration.

    `counts` are those of the terms. One occurrence of a pair (v, w) is removed from all counts, including those of
    p(w):

        p₋(w | v) = (c(v, w) − 1 + μ p₋(w)) / (c(v) − 1 + μ),    p₋(w) = (c(w) − 1 + s) / (N − 1 + s(V + 1))

    A pair with a total weight below 1 is removed entirely. Pairs with probability 0 for every μ, which occur only with
    s = 0, are excluded from the sums.
    """
    pair = bigrams.weight
    before = np.bincount(bigrams.previous + 1, pair)[bigrams.previous + 1] if len(pair) else pair
    removed = np.minimum(pair, 1.0)
    term = np.maximum(counts[bigrams.terms] - removed, 0.0) + smoothing
    used = (pair > removed) | (term > 0.0)
    pair, before, removed, term = pair[used], before[used], removed[used], term[used]
    unigram = term / (counts.sum() + smoothing * (len(counts) + 1) - removed)
    return np.array(
        [pair @ (np.log(pair - removed + mu * unigram) - np.log(before - removed + mu)) for mu in concentrations]
    )


@dataclass(frozen=True, eq=False, repr=False)
class LanguageModel(RenderedResult):
    """Language model of one class: the distribution of the terms of a text.

    A model of order 1 assumes independent terms (unigrams, bag of words). The probability of a text is the product of

        p(w) = (c(w) + s) / (N + s (V + 1))

    over its terms, where c(w) is the count of the term w in the class, N the count of all terms, V the size of the
    vocabulary and s the smoothing. All terms outside of the vocabulary are treated as one additional term, the unknown
    term, which has the count 0.

    A model of order 2 (bigrams) assumes that a term depends only on the previous term v, or on the start of the text.
    The probability of a text is the product of

        p(w | v) = (c(v, w) + μ p(w)) / (c(v) + μ)

    where c(v, w) is the number of times that w follows v, and c(v) its sum over all terms w of the vocabulary. This is
    the posterior mean under a Dirichlet prior with mean p(w) and concentration μ. After an unknown term, p(w | v) is
    p(w). The end of a text is not modelled.

    Parameters
    ----------
    terms : sequence of str
        The vocabulary.
    counts : array of shape (n_terms,)
        Counts of the terms in the texts of the class. Weighted counts need not be integers.
    smoothing : float, default=0.5
        Pseudo-count of each term. 0 is maximum likelihood.
    analyzer : callable, default=str.split
        Function that returns the terms of a text, such as `CountVectorizer().build_analyzer()`.
    bigrams : BigramCounts, default=None
        Counts of the pairs of consecutive terms in the class, for a model of order 2.
    concentration : float, default=None
        The concentration μ. None chooses the value among 1, 3, 10, 30, 100, 300 and 1,000 with the largest
        leave-one-out log-probability of the pairs.
    library : str, default=None
        Library of the frames: "pandas", "polars" or "pyarrow". None is pandas, or pyarrow if pandas is not installed.

    Attributes
    ----------
    terms : list of str
        The vocabulary, sorted.
    counts : array of shape (n_terms,)
        Counts of the terms.
    smoothing : float
        Pseudo-count of each term.
    analyzer : callable
        Function that returns the terms of a text.
    bigrams : BigramCounts or None
        Counts of pairs; None in a model of order 1.
    concentration : float or None
        The concentration μ; None in a model of order 1.
    library : str or None
        Library of the frames.
    order : int
        1 for unigrams, 2 for bigrams.
    probabilities : array of shape (n_terms,)
        p(w) of each term; 1 minus their sum is `unknown_probability`.
    unknown_probability : float
        p(w) of a term outside of the vocabulary.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from likely.text.language_model import LanguageModel
    >>> vectorizer = CountVectorizer()
    >>> words = vectorizer.fit_transform(["the cat sat on the mat", "the cat ate"])
    >>> counts, terms = np.ravel(words.sum(axis=0)), vectorizer.get_feature_names_out()
    >>> model = LanguageModel(terms, counts, analyzer=vectorizer.build_analyzer())
    >>> round(model.probability("cat"), 4)
    0.2
    >>> round(model.perplexity("The cat sat."), 2)
    5.3
    """

    terms: Sequence[str]
    counts: Array
    smoothing: float = 0.5
    analyzer: Analyzer = str.split
    bigrams: BigramCounts | None = None
    concentration: float | None = None
    library: str | None = None

    def __post_init__(self) -> None:
        terms, counts, bigrams = list(self.terms), np.asarray(self.counts, dtype=np.float64), self.bigrams
        _check_counts(terms, counts, self.smoothing)
        _check_bigrams(bigrams, len(terms), self.concentration)
        order = np.array(sorted(range(len(terms)), key=terms.__getitem__), dtype=np.intp)
        if np.any(np.diff(order) < 0):  # ties and generated text would depend on the order of the terms
            terms, counts = [terms[i] for i in order], counts[order]
            bigrams = None if bigrams is None else bigrams.renumbered(np.argsort(order), len(terms))
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "bigrams", bigrams)
        if bigrams is not None and self.concentration is None:
            chosen = choose_concentrations(bigrams, counts[None], self.smoothing)
            object.__setattr__(self, "concentration", float(chosen[0]))

    @property
    def order(self) -> int:
        """1 for unigrams, 2 for bigrams."""
        return 1 if self.bigrams is None else 2

    @property
    def probabilities(self) -> Array:
        """The unigram probability p(w) of each term."""
        return self._unigram[:-1]

    @property
    def unknown_probability(self) -> float:
        """The unigram probability p(w) of a term outside of the vocabulary."""
        return float(self._unigram[-1])

    def __repr__(self) -> str:
        mu = "" if self.concentration is None else f", concentration={self.concentration:g}"
        return f"LanguageModel(order={self.order}, n_terms={len(self.terms)}, smoothing={self.smoothing:g}{mu})"

    def _parts(self) -> list[str | TextTable]:
        order = np.argsort(-self.probabilities, kind="stable")
        shown, more = limited(order.tolist(), SHOWN)
        names = short_names([self.terms[i] for i in shown])
        rows = [
            (name, f"{self.counts[i]:g}", f"{self.probabilities[i]:.4g}") for name, i in zip(names, shown, strict=True)
        ]
        return [repr(self), TextTable(("term", "count", "probability"), rows, more=more)]

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    @cached_property
    def _unigram(self) -> Array:
        """p(w) of all terms, followed by that of the unknown term."""
        pseudo = np.append(self.counts, 0.0) + self.smoothing
        return pseudo / pseudo.sum()

    @cached_property
    def _rows(self) -> Index:
        """Where the pairs of each previous term begin: START, all terms, the unknown term, and the end."""
        assert self.bigrams is not None
        return np.searchsorted(self.bigrams.previous, np.arange(START, len(self.terms) + 2))

    @cached_property
    def _keys(self) -> Index:
        """One number for each pair, in increasing order."""
        assert self.bigrams is not None
        return _pair_keys(self.bigrams.previous, self.bigrams.terms, len(self.terms))

    @cached_property
    def _cumulative(self) -> Array:
        """Sums of the weights of all pairs before each one, and of all pairs."""
        assert self.bigrams is not None
        return np.append(0.0, np.cumsum(self.bigrams.weight))

    def probability(self, term: str, history: str | None = None) -> float:
        """Probability of one term.

        Parameters
        ----------
        term : str
            A term, spelled as in the vocabulary: in lower case if the analyzer returns lower case. A term outside of
            the vocabulary has the probability of the unknown term.
        history : str, default=None
            Text before the term. None is the start of a text. Models of order 1 ignore it.

        Returns
        -------
        float
            p(w), or p(w | v) in a model of order 2.

        Examples
        --------
        >>> from likely.text.language_model import LanguageModel
        >>> LanguageModel(["a", "b"], [3, 1], smoothing=1).probability("a")
        0.5714285714285714
        """
        _check_text("term", term)
        return float(self._next(history)[self._vocabulary.get(term, len(self.terms))])

    def log_probability(self, text: str | Iterable[str]) -> float:
        """Logarithm of the probability of a text, given its number of terms.

        Parameters
        ----------
        text : str or iterable of str
            One text, or several, whose log-probabilities are summed.

        Returns
        -------
        float
            Sum of log p(w) over the terms of the text, or of log p(w | v) in a model of order 2. 0 for a text without
            terms. −inf if a term has the probability 0, which is possible only with `smoothing=0`.

        Examples
        --------
        >>> from likely.text.language_model import LanguageModel
        >>> round(LanguageModel(["a", "b"], [3, 1], smoothing=1).log_probability("a b c"), 4)
        -3.7583
        """
        return float(np.sum(self._log_probabilities(text)))

    def perplexity(self, text: str | Iterable[str]) -> float:
        """Perplexity of a text: the inverse of the geometric mean of the probabilities of its terms.

        A uniform distribution over m terms has the perplexity m. Terms outside of the vocabulary count as the unknown
        term, so perplexities of models with different vocabularies are not comparable.

        Parameters
        ----------
        text : str or iterable of str
            One text, or several, whose perplexity is computed over all their terms.

        Returns
        -------
        float
            exp(−log p / n) for a text of n terms, and NaN for a text without terms.

        Examples
        --------
        >>> from likely.text.language_model import LanguageModel
        >>> round(LanguageModel(["a", "b"], [3, 1], smoothing=1).perplexity("a b c"), 4)
        3.5
        """
        logs = self._log_probabilities(text)
        return float(np.exp(-np.mean(logs))) if len(logs) else float("nan")

    def next_term(self, history: str | None = None) -> Any:
        """Distribution of the next term of a text.

        Parameters
        ----------
        history : str, default=None
            The preceding text. None or a text without terms is the start of a text. A model of order 2 uses its last
            term; a model of order 1 ignores it.

        Returns
        -------
        frame of n_terms + 1 rows
            Columns `term` and `probability`, the most probable term first. The unknown term is null. The probabilities
            sum to one.

        Examples
        --------
        >>> from likely.text.language_model import LanguageModel
        >>> LanguageModel(["a", "b"], [3, 1], smoothing=1).next_term().round(3).head(2)
          term  probability
        0    a        0.571
        1    b        0.286
        """
        return self._frame(self._next(history))

    def to_frame(self) -> Any:
        """Terms with their counts and probabilities p(w).

        Returns
        -------
        frame of n_terms + 1 rows
            Columns `term`, `probability` and `count`, the most probable term first. The unknown term is null. The
            probabilities sum to one.

        Examples
        --------
        >>> from likely.text.language_model import LanguageModel
        >>> LanguageModel(["a", "b"], [3, 1], smoothing=1).to_frame()["count"].tolist()
        [3.0, 1.0, 0.0]
        """
        return self._frame(self._unigram, {"count": np.append(self.counts, 0.0)})

    def generate(self, n_terms: int, random_state: RandomStateLike | None = None) -> str:
        """Draw a text.

        The terms are drawn from the vocabulary one after another, in a model of order 2 conditional on the previous
        term. The unknown term is never drawn.

        Parameters
        ----------
        n_terms : int
            Number of terms.
        random_state : int or RandomState, default=None
            Seed or generator of the random numbers.

        Returns
        -------
        str
            The terms, separated by spaces.

        Examples
        --------
        >>> from likely.text.language_model import LanguageModel
        >>> LanguageModel(["a", "b"], [3, 1]).generate(5, random_state=0)
        'a b a a a'
        """
        check_number("n_terms", n_terms, 0, whole=True)
        cumulative = np.cumsum(self.probabilities)
        if n_terms and not (len(cumulative) and cumulative[-1] > 0.0):
            raise InputError("The vocabulary is empty, so that no text can be generated.")
        rng = seeded(random_state)
        drawn = _positions(cumulative, rng.random_sample(n_terms)) if n_terms else np.zeros(0, dtype=np.intp)
        if self.bigrams is not None:
            drawn = self._with_history(drawn, rng.random_sample((n_terms, 2)))
        return " ".join(self.terms[i] for i in drawn)

    def _with_history(self, independent: Index, uniform: Array) -> Index:
        """Terms drawn from p(w | v), a mixture of the pairs that begin with v and of p(w).

        p(w | v, w is known) has weight c(v) for c(v, w) / c(v), and μ (1 − p(unknown)) for p(w | w is known).
        """
        assert self.bigrams is not None
        assert self.concentration is not None
        drawn, before, rows, cumulative = independent.copy(), START, self._rows, self._cumulative
        prior = self.concentration * (1.0 - self.unknown_probability)
        for i, (choice, position) in enumerate(uniform):
            start, stop = rows[before + 1], rows[before + 2]
            total = cumulative[stop] - cumulative[start]
            if choice * (total + prior) < total:
                row = cumulative[start : stop + 1] - cumulative[start]
                drawn[i] = self.bigrams.terms[start + _positions(row[1:], position)]
            before = int(drawn[i])
        return drawn

    def _next(self, history: str | None) -> Array:
        """p(w | history) of all terms, followed by that of the unknown term."""
        _check_text("history", "" if history is None else history)
        if self.bigrams is None or self.concentration is None:
            return self._unigram
        terms = self._term_ids(history or "")
        before = int(terms[-1]) if len(terms) else START
        start, stop = self._rows[before + 1], self._rows[before + 2]
        pairs = np.zeros(len(self.terms) + 1)
        pairs[self.bigrams.terms[start:stop]] = self.bigrams.weight[start:stop]
        return (pairs + self.concentration * self._unigram) / (pairs.sum() + self.concentration)

    def _term_ids(self, text: str) -> Index:
        """The numbers of the terms of a text; that of the unknown term is the number of terms."""
        found = term_ids([text], self.analyzer, self._vocabulary)[0]
        return np.where(found < 0, len(self.terms), found)

    def _log_probabilities(self, text: str | Iterable[str]) -> Array:
        """The log-probability of each term of some texts, given the previous one."""
        if isinstance(text, bytes) or not isinstance(text, Iterable):
            raise InputTypeError(f"text={text!r} is neither a str nor several.")
        texts = [text] if isinstance(text, str) else list(text)
        for i, each in enumerate(texts):
            _check_text(f"text, row {i}", each)
        parts = [self._term_ids(each) for each in texts]
        terms = np.concatenate([np.zeros(0, dtype=np.intp), *parts])
        probability = self._unigram[terms]
        if self.bigrams is not None and self.concentration is not None:
            before = np.concatenate([np.zeros(0, dtype=np.intp), *(np.append(START, part)[:-1] for part in parts)])
            totals = np.diff(self._cumulative[self._rows])[before + 1]
            probability = (self._pair_weights(before, terms) + self.concentration * probability) / (
                totals + self.concentration
            )
        with np.errstate(divide="ignore"):
            return np.log(probability)

    def _pair_weights(self, before: Index, terms: Index) -> Array:
        """c(v, w) of pairs."""
        assert self.bigrams is not None
        keys, wanted = self._keys, _pair_keys(before, terms, len(self.terms))
        place = np.searchsorted(keys, wanted)
        found = np.append(keys, -1)[place] == wanted
        return np.where(found, np.append(self.bigrams.weight, 0.0)[place], 0.0)

    def _frame(self, probability: Array, columns: Mapping[str, Array] | None = None) -> Any:
        order = np.argsort(-probability, kind="stable")
        names: list[str | None] = [*self.terms, None]
        data: dict[str, Any] = {"term": [names[i] for i in order], "probability": probability[order]}
        data |= {name: values[order] for name, values in (columns or {}).items()}
        return to_frame(data, self.library)


def _pair_keys(before: Codes, terms: Codes, n_terms: int) -> Index:
    """Pairs as numbers, different for different pairs; the number of the unknown term is n_terms."""
    return (before.astype(np.int64) + 1) * (n_terms + 1) + terms


def _positions(cumulative: Array, uniform: Any) -> Any:
    """Numbers drawn from a distribution with cumulative weights; one of weight 0 is never drawn."""
    last = np.searchsorted(cumulative, cumulative[-1])
    return np.minimum(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"), last)


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise InputTypeError(f"{name}: {text!r} is not a str.")


def _check_counts(terms: list[Any], counts: Array, smoothing: float) -> None:
    """Raise unless terms are distinct texts, and counts have one non-negative number for each."""
    check_number("smoothing", smoothing, 0.0)
    for i, term in enumerate(terms):
        _check_text(f"terms, position {i}", term)
    if len(set(terms)) < len(terms):
        raise InputError(f"Duplicate terms: {listed(term for term, times in Counter(terms).items() if times > 1)}.")
    if counts.shape != (len(terms),):
        raise InputError(f"counts has the shape {counts.shape}, and there are {len(terms)} terms. Pass one for each.")
    wrong = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0.0)))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(f"counts: {counts[i]:g} of the term {terms[i]!r} is not a non-negative number.")
    if smoothing == 0.0 and not counts.any():
        raise InputError("The texts of the class have no terms, so that smoothing=0 determines no probabilities.")


def _check_bigrams(bigrams: BigramCounts | None, n_terms: int, concentration: float | None) -> None:
    """Raise unless bigrams are of one class and of this vocabulary, and the concentration is positive."""
    if bigrams is None:
        if concentration is not None:
            raise InputError(f"concentration={concentration!r} needs bigrams. Pass bigrams=, or leave it out.")
        return
    if bigrams.n_classes != 1:
        raise InputError(f"Bigrams of {bigrams.n_classes} classes. Use bigrams.select(code) for one of them.")
    if int(max(bigrams.terms.max(initial=-1), bigrams.previous.max(initial=-1))) >= n_terms:
        raise InputError(f"The bigrams have terms beyond the {n_terms} of the vocabulary.")
    if concentration is not None:
        check_number("concentration", concentration, 1e-9)
