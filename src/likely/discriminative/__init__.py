"""Softmax regression and the hybrid of generative and discriminative training."""
