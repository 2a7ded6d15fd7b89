"""What is measured is compiled, as an installed program is: compiling takes time and memory that are not its own."""

import compileall
import os
from pathlib import Path

import bcd

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
assert compileall.compile_dir(Path(bcd.__file__).parent, quiet=1)
