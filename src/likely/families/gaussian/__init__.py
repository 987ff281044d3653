"""The Gaussian family: options, estimates, densities, leave-one-out, missing values, mixtures."""
