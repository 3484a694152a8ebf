"""python -m mercer.cli"""

import sys

from . import main

sys.exit(main())
