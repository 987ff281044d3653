"""Properties that hold for every member of a registry."""
