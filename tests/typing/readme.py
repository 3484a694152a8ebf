"""Write the Python blocks of README.md as one script, for a type checker: make lint."""

import re
import sys
from pathlib import Path

if __name__ == "__main__":
    text = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    Path(sys.argv[1]).write_text("\n".join(blocks))
