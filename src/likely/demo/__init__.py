"""A demonstration on the Palmer penguins: ``make demo`` or ``python -m likely.demo`` prints it."""
