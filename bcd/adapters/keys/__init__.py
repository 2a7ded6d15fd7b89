"""Node keys: where they are made and how they sign."""
