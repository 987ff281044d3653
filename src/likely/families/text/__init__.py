"""Text: vocabularies, models of terms, and the family `Text` of a column of documents."""
