"""What is learnt and what it answers: specification, joint model, class prior, EM, decisions, files."""
