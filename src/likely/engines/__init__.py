"""Rows elsewhere, read in parts: files, databases and lazy frames (`scan`), Dask and Spark; files of predictions."""
