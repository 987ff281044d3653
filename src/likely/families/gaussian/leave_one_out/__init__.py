"""Leave-one-out densities of Gaussian rows in closed form, one module for each kind of covariance."""
