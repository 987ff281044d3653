"""Print the demonstration."""

from __future__ import annotations

from likely import GenerativeClassifier
from likely.demo import classification, learning
from likely.demo.penguins import load_birds, load_table, out_of_fold


def main() -> None:
    """Print the demonstration."""
    birds = load_birds()
    print("likely: classification of three species of penguins")
    classification.show_fit(birds)
    classification.show_validation(birds)
    posterior = out_of_fold(GenerativeClassifier(), birds.X, birds.y)
    classification.show_confusion(birds, posterior)
    classification.show_few_birds(birds)
    classification.show_table(load_table())
    classification.show_birds(birds, posterior)
    classification.show_decisions(birds, posterior)
    classification.show_boundaries(birds)
    classification.show_samples(birds)
    learning.show_sums(birds)
    learning.show_missing(birds)
    learning.show_softmax(birds)
    learning.show_curves(birds)
    learning.show_regression(load_table())


if __name__ == "__main__":
    main()
