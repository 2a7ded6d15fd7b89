"""Where a join token comes from: standard input, a file, or the descriptor `BCD_JOIN_TOKEN` was handed on by."""
