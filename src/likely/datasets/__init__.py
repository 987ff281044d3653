"""Tables that ship with the package."""
