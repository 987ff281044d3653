"""The joint model p(x, y): specification, class prior, EM, posterior, decisions, imputation and model files."""
