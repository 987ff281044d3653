"""Classify three species of penguins with the recommended estimator: `make demo` or `python examples/demo.py`."""

from copy import deepcopy

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likely import EvidenceClassifier
from likely.datasets import penguins

birds = penguins()
X, y = birds.drop(columns="species"), birds["species"]
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=100, random_state=0, stratify=y)
print(f"{len(birds)} penguins: {len(X_train)} to train, {len(X_test)} held out. {X.isna().sum().sum()} missing values.")

# Fit. No preprocessing: columns may be numbers or categories, with missing values. scikit-learn needs a pipeline.
model = EvidenceClassifier().fit(X_train, y_train)
numbers = make_pipeline(SimpleImputer(), StandardScaler())
categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
columns = (numbers, make_column_selector(dtype_include="number")), (categories, ["island", "sex"])
logistic = make_pipeline(make_column_transformer(*columns), LogisticRegression()).fit(X_train, y_train)
proportions = DummyClassifier(strategy="prior").fit(X_train, y_train)

print("\nScores of the held-out birds             accuracy  log-loss")
for name, fitted in (
    ("EvidenceClassifier()", model),
    ("scikit-learn's LogisticRegression()", logistic),
    ("class proportions", proportions),
):
    accuracy, loss = accuracy_score(y_test, fitted.predict(X_test)), log_loss(y_test, fitted.predict_proba(X_test))
    print(f"{name:<40}{accuracy:>9.3f}{loss:>10.3f}")

# Explain one prediction. The contributions of the columns sum to the score of each class.
posterior = model.predict_proba(X_test)
complete = X_test.notna().all(axis=1)
bird = X_test[complete].iloc[[posterior[complete].max(axis=1).argmin()]]  # the least certain one
print(f"\nOne {y_test[bird.index[0]]}, predicted as {model.predict(bird)[0]}")
print(model.explain(bird))

# Decide. An error costs 1, and an expert, who is asked about uncertain birds, costs 0.05.
decisions = model.decide(X_test, reject=0.05, reject_label="expert")
decided = ~decisions.rejected
errors = int((decisions.action[decided] != y_test[decided]).sum())
print(f"\nWith rejection at a cost of 0.05: {decided.sum()} birds are decided, {errors} of them wrongly,")
print(f"and {decisions.rejected.sum()} go to an expert.")

# Missing values need no imputation: a column without a value contributes nothing.
print("\nThe same bird                     " + "".join(f"{name:>11}" for name in model.classes_))
for text, hidden in (
    ("all values", []),
    ("without its bill", ["bill_length_mm", "bill_depth_mm"]),
    ("without all columns but the year", [name for name in X if name != "year"]),
):
    row = model.predict_proba(bird.assign(**dict.fromkeys(hidden, np.nan)))[0]
    print(f"{text:<34}" + "".join(f"{p:>11.3f}" for p in row))

# Forget rows, without refitting: the counts are those of the other rows. Structures and weights are kept.
removed = deepcopy(model).forget(X_train[:10], y_train[:10])
refitted = EvidenceClassifier().fit(X_train[10:], y_train[10:], structure_of=model)
difference = np.abs(removed.predict_proba(X_test) - refitted.predict_proba(X_test)).max()
print(f"\nForgetting 10 birds: probabilities differ by at most {difference:.0e} from a count of the other 90.")
