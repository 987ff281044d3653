"""Text: classification of documents, and a language model for every class."""
