"""What a user does, from end to end."""
