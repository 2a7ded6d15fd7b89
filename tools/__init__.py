"""What make runs. Standard library only: it works before there is a .venv."""
