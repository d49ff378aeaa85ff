"""What needs a whole model: training small ones, and reading hidden states."""
