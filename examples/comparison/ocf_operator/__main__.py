"""The operator as a process: `python -m examples.comparison.ocf_operator`."""

import os

from examples.comparison.ocf_operator.operator import operator
from ocf.runtime.operator import environment_options, main

if __name__ == "__main__":
    main(operator, options=environment_options(operator.name, os.environ))
