"""Remakes the generated modules beside the proto files; `--check` fails when that would change one."""

import re
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "bcd" / "protocol" / "pb"
PACKAGE = "bcd.protocol.pb."


def generate(out: Path) -> list[Path]:
    protos = sorted(str(p.relative_to(HOME)) for p in HOME.rglob("*.proto"))
    include = str(files("grpc_tools") / "_proto")
    args = [
        "protoc",
        f"-I{HOME}",
        f"-I{include}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
    ]
    if protoc.main([*args, *protos]) != 0:
        raise SystemExit("protoc failed")
    made = sorted(p for p in out.rglob("*_pb2*") if p.is_file())
    for path in made:
        # protoc writes imports from the proto root; ours lives inside the package.
        text = re.sub(r"^(from|import) bc\.identity", rf"\1 {PACKAGE}bc.identity", path.read_text(), flags=re.MULTILINE)
        path.write_text(text)
    return made


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        changed = []
        for path in generate(out):
            home = HOME / path.relative_to(out)
            if not home.exists() or home.read_bytes() != path.read_bytes():
                changed.append(str(home.relative_to(ROOT)))
                if "--check" not in sys.argv:
                    shutil.copyfile(path, home)
    if changed and "--check" in sys.argv:
        print("not what the proto files say (make proto):", *changed)
        return 1
    print("generated modules:", ", ".join(changed) if changed else "up to date")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
