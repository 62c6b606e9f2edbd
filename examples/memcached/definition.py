"""The CustomResourceDefinition of Memcached: `python -m examples.memcached.definition` prints it."""

from examples.memcached.model import Memcached
from ocf.objects import dump_document

if __name__ == "__main__":
    print(dump_document(Memcached.definition()), end="")
