"""Options of text columns, which the rows of the first fit determine unless they are declared."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
import scipy.sparse

from likely.choice.covariances import labeled_counts
from likely.choice.row_sample import sampled_rows
from likely.choice.term_options import Sample, TermChoice, TermTrial
from likely.data.batches import Batch, Batches
from likely.data.row_blocks import BlockTask, summarise
from likely.errors import InputError
from likely.families.estimation import Estimation
from likely.families.text.document_sums import DocumentAccumulator, DocumentSums
from likely.families.text.family import Text
from likely.model.choices import Choice
from likely.model.plans import Plan
from likely.numerics.tree_sum import group_sum


def with_texts(plans: list[Plan], batches: Batches, declared: bool = True) -> list[Plan]:
    """The plans with all options of text columns: those with the least leave-one-out log-loss by the text alone.

    Columns that were recognised as text, and not declared, are set aside where no document has a term.
    """
    found = []
    for plan in plans:
        if not plan.family._reads_text:
            found.append(plan)
            continue
        family = cast(Text, plan.family)
        family.check(Estimation.BAYES)
        if family._is_fixed:
            found.append(plan)
            continue
        place = 0 if plan.columns is None else plan.columns[0]
        width = batches.first.table.width if plan.columns is None else len(plan.columns)
        if width > 1:
            raise InputError(f"Text() models one column, and the block has {width}. Use families={{column: Text()}}.")
        try:
            found.append(_chosen(plan, family, place, batches.sample))
        except NoTermsError as error:
            if declared:
                raise InputError(str(error)) from None
    return found


class NoTermsError(Exception):
    """No document of a column has a term."""


def _chosen(plan: Plan, family: Text, place: int, batches: Batches) -> Plan:
    name = batches.first.table.names[place]
    total = _collected(family, place, name, batches)
    vocabulary, model = total.vocabulary, family._model
    sample = _sample(total, family, place, batches)
    length = 0.0 if family.length_exponent is None and family.exponent is not None else family.length_exponent
    trial = TermTrial(total.sums, not vocabulary.grows, sample, family.exponent)
    choices = trial.choices(model, family.smoothing, family._merging, length)
    families = [_with_choice(family, total, choice) for choice in choices]
    names = [each.describe() for each in families]
    losses = {text: choice.loss for text, choice in zip(names, choices, strict=True)}
    weight = float(total.sums.counts.weight.sum())
    record = Choice((name,), names[0], dict(losses), dict.fromkeys(names, 0.0), weight, standard_errors=0.0)
    return replace(plan, family=families[0], choices=(record,))


def _with_choice(family: Text, total: DocumentSums, choice: TermChoice) -> Text:
    """The family with a choice; t·(n/m)^−γ is (t·m^γ)·n^−γ."""
    exponent = family.exponent
    if exponent is None:
        learnt = 1.0 if choice.calibration is None else choice.calibration.exponent
        exponent = learnt * choice.mean_length**choice.length_exponent
    return family._fixed(total.vocabulary, choice.model, float(exponent), choice.length_exponent)


def _collected(family: Text, place: int, name: str, batches: Batches) -> DocumentSums:
    """Sums of the labeled documents."""
    vocabulary = family._empty_vocabulary
    if not vocabulary.grows and not family._has_columns:  # such vectorizers need all documents at once
        documents = [
            document
            for batch in batches
            if batch.table.rows
            for document in batch.table.documents(place)(0, batch.table.rows).take(batch.row_weights > 0.0)
        ]
        vocabulary, _ = vocabulary.learn(documents)

    def sums(batch: Batch) -> DocumentSums:
        make = partial(DocumentAccumulator, batch.counts.classes, vocabulary, family._model)
        task = BlockTask(np.array([place]), batch.table.documents(place), make)
        found: DocumentSums = summarise(batch.table, batch.codes, batch.weights, [task])[0]
        return found

    total: DocumentSums | None = group_sum([sums(batch) for batch in batches if batch.table.rows])
    if total is None or not total.sums.raw.nnz:
        raise NoTermsError(
            f"Column {name!r}: no document has a term (empty vocabulary). Check the documents and the options of the "
            f"vectorizer, or set the column aside with families={{{name!r}: None}}."
        )
    return total


def _sample(total: DocumentSums, family: Text, place: int, batches: Batches) -> Sample:
    """Documents that candidates are judged by."""
    parts = sampled_rows(batches, labeled_counts(batches, total.classes))
    blocks = [some.table.documents(place)(0, some.table.rows) for some in parts]
    values = [family._model.transform(total.vocabulary.read(block)) for block in blocks]
    fields = zip(*((some.codes.astype(np.intp), some.held_out, some.weights) for some in parts), strict=True)
    documents = list(itertools.chain.from_iterable(blocks))
    return Sample(documents, scipy.sparse.vstack(values, format="csr"), *map(np.concatenate, fields))
