"""Cross-validation, model selection and comparison."""
