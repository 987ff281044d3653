"""`EvidenceClassifier`: several generative views of a row, weighted on evidence of rows that they have not seen."""
