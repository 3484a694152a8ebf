"""python -m mercer: the command."""

import sys

from .cli import main

sys.exit(main())
