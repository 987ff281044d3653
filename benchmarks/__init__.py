"""Speed and memory, printed as ratios measured in one run: machines are noisy, ratios less so."""
