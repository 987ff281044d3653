"""Tables as a user hands them over, read in row blocks."""
